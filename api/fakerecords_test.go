package api

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/files"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
)

func (f *fake) CreateKey(_ context.Context, _ access.Caller, name, user string, all bool, r []access.Right) (access.Key, string, error) {
	return access.Key{ID: "key-2", Name: name, UserID: user, AllUsers: all, Rights: r, CreatedAt: born.UTC()}, "sk-new", f.failure()
}

func (f *fake) Keys(context.Context, access.Caller) ([]access.Key, error) {
	return []access.Key{{ID: "key-1", Name: "first", UserID: "default", AllUsers: true, Rights: access.Rights(), CreatedAt: born.UTC()}}, f.failure()
}
func (f *fake) DeleteKey(context.Context, access.Caller, string) error { return f.failure() }

func (f *fake) version(user string) library.Default {
	f.mu.Lock()
	f.users = append(f.users, user)
	f.mu.Unlock()
	return library.Default{UserID: user, Version: 2, SnapshotID: "snap-1", MovedAt: born}
}

func (f *fake) Settings(context.Context, access.Caller, string) (session.Settings, error) {
	return f.settings, f.failure()
}

func (f *fake) ChangeSettings(_ context.Context, _ access.Caller, _ string, change func(session.Settings) (session.Settings, error)) (session.Settings, error) {
	set, err := change(f.settings)
	if err != nil {
		return set, err
	}
	f.settings = set
	return set, f.failure()
}

// CheckDefault finds that nobody is logged in.
func (f *fake) CheckDefault(_ context.Context, _ access.Caller, user string) (session.LoginOutcome, error) {
	_ = f.version(user)
	return *outcome(), f.failure()
}

func outcome() *session.LoginOutcome {
	at, status, snap, version := "https://a.example/login", int64(302), "snap-1", int64(2)
	return &session.LoginOutcome{CheckedAt: born.UTC(), URL: &at, Status: &status, SnapshotID: &snap, Version: &version,
		Conditions: []browser.Condition{{Kind: browser.ConditionStatus}}, DurationMS: 640}
}

func (f *fake) LastCheck(context.Context, access.Caller, string) (*session.LoginOutcome, error) {
	return outcome(), f.failure()
}

func (f *fake) Default(_ context.Context, _ access.Caller, user string) (library.Default, error) {
	return f.version(user), f.failure()
}

func (f *fake) SetDefault(_ context.Context, _ access.Caller, user, _ string, _ *int64) (library.Default, error) {
	return f.version(user), f.failure()
}
func (f *fake) DeleteDefault(context.Context, access.Caller, string) error { return f.failure() }
func (f *fake) DefaultHistory(_ context.Context, _ access.Caller, user string, _ int, _ string) ([]library.PastDefault, string, error) {
	gone := library.Default{UserID: user, Version: 3, MovedAt: born}
	return []library.PastDefault{{Default: gone}, {Default: f.version(user), Available: true}}, "2", f.failure()
}

func (f *fake) Snapshots(_ context.Context, _ access.Caller, id string, _ int, _ string) ([]library.SnapshotInfo, string, error) {
	if id == liveID {
		return nil, "", f.failure()
	}
	return []library.SnapshotInfo{snapshotInfo()}, "snap-1", f.failure()
}

func (f *fake) AllSnapshots(_ context.Context, _ access.Caller, user string, _ int, _ string) ([]library.SnapshotInfo, string, error) {
	_ = f.version(user)
	return []library.SnapshotInfo{snapshotInfo()}, "snap-1", f.failure()
}

func (f *fake) Snapshot(context.Context, access.Caller, string) (library.SnapshotInfo, error) {
	return snapshotInfo(), f.failure()
}
func (f *fake) Diff(_ context.Context, _ access.Caller, from, to string, values bool) (library.Diff, error) {
	c := state.Change{Name: "cookies", Origin: "a.example", Added: []string{}, Removed: []string{}, Changed: []string{"login"}, Before: 1, After: 1}
	was, is := "1", "2"
	c.Attributes = map[string]map[string]*state.Values{"login": {"expires": {After: &is}, "value": nil}}
	if values {
		c.Values = map[string]state.Values{"login": {Before: &was, After: &is}}
	}
	return library.Diff{From: from, To: to, Changes: []state.Change{c},
		NotCompared: []state.Uncompared{{Name: "hsts", Reason: "it was not counted"}}}, f.failure()
}

// Prune finds one to remove and one to keep.
func (f *fake) Prune(_ context.Context, _ access.Caller, r library.PruneRequest) (library.PruneAnswer, error) {
	f.mu.Lock()
	f.users = append(f.users, r.UserID)
	f.mu.Unlock()
	one := library.PrunedSnapshot{ID: "snap-1", SessionID: endedID, UserID: "alice", CreatedAt: born.UTC(), SizeBytes: 45000}
	a := library.PruneAnswer{DryRun: r.DryRun, RemovedCount: 1, FreedBytes: 45000, Removed: []library.PrunedSnapshot{one},
		KeptCount: 1, KeptBy: map[library.Reason]int{library.KeptDefault: 1}}
	if r.DryRun {
		a.Kept = []library.KeptSnapshot{{PrunedSnapshot: one, Reasons: []library.Reason{library.KeptDefault}}}
	}
	return a, f.failure()
}

// VerifySnapshot finds that a bit has flipped.
func (f *fake) VerifySnapshot(_ context.Context, _ access.Caller, id string) (library.VerifyResult, error) {
	return library.VerifyResult{SnapshotID: id, Checked: library.Checked{Document: true},
		Problems: []library.Problem{{Code: fault.ArchiveDamaged, Message: "its archive has another hash"}}, DurationMS: 12}, f.failure()
}

func (f *fake) DeleteSnapshot(context.Context, access.Caller, string) error { return f.failure() }

// What the fake's agents have.
const (
	documentID = "01900000-0000-7000-8000-000000000001"
	manifest   = `{"schemaVersion":"1.0","updatedAt":"2026-11-22T04:34:40.908Z"}`
	document   = `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{"a":[{"b":null}]},"appData":{}}`
)

func (f *fake) MaySave(context.Context, access.Caller, agent.Scope) error { return f.failure() }

// SaveDocument remembers the body by session, scope, scope ID, ID and whether it is the latest.
func (f *fake) SaveDocument(_ context.Context, _ access.Caller, at agent.Scope, id string, body []byte, latest bool) error {
	f.mu.Lock()
	f.uploads[fmt.Sprint(at, id, latest)] = body
	f.mu.Unlock()
	return f.failure()
}

func (f *fake) Document(context.Context, access.Caller, agent.Scope, string) ([]byte, error) {
	return []byte(document), f.failure()
}

func (f *fake) DocumentIDs(_ context.Context, _ access.Caller, _ agent.Scope, limit int, _ string) ([]string, string, error) {
	if limit > 1 {
		return nil, "", f.failure()
	}
	return []string{documentID}, documentID, f.failure()
}

func (f *fake) DeleteDocument(context.Context, access.Caller, agent.Scope, string) error {
	return f.failure()
}

func (f *fake) Manifest(context.Context, access.Caller, agent.Scope) ([]byte, error) {
	return []byte(manifest), f.failure()
}

func (f *fake) SaveManifest(_ context.Context, _ access.Caller, at agent.Scope, body []byte) error {
	return f.SaveDocument(context.Background(), access.Caller{}, at, "manifest", body, false)
}
func (f *fake) DeleteDocuments(context.Context, access.Caller, string) error { return f.failure() }

func (f *fake) ListFiles(context.Context, access.Caller, string) ([]files.Info, error) {
	return []files.Info{{Name: "a b.html", Size: 4, ModTime: born}}, f.failure()
}

func (f *fake) OpenFile(_ context.Context, _ access.Caller, _, name string) (*os.File, error) {
	file, err := os.Open(filepath.Join(f.dir, name))
	return file, fault.Wrap(err, fault.FileNotFound, "fake", "")
}

func (f *fake) PutFile(_ context.Context, _ access.Caller, _, name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.uploads[name] = data
	f.mu.Unlock()
	return f.failure()
}
func (f *fake) DeleteFile(context.Context, access.Caller, string, string) error { return f.failure() }

func night() library.Extension {
	return library.Extension{ID: "abcdefghijklmnopabcdefghijklmnop", UserID: "alice", SHA256: strings.Repeat("a1", 32),
		Name: "Night", Version: "1.0", SizeBytes: 5, CreatedAt: born.UTC()}
}

// PutExtension finds that a second upload is there already.
func (f *fake) PutExtension(_ context.Context, _ access.Caller, r io.Reader) (library.Extension, bool, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return library.Extension{}, false, err
	}
	f.mu.Lock()
	_, there := f.uploads["extension"]
	f.uploads["extension"] = data
	f.mu.Unlock()
	return night(), !there, f.failure()
}

func (f *fake) ListExtensions(context.Context, access.Caller) ([]library.Extension, error) {
	return []library.Extension{night()}, f.failure()
}

func (f *fake) Extension(context.Context, access.Caller, string) (library.Extension, error) {
	return night(), f.failure()
}
func (f *fake) DeleteExtension(context.Context, access.Caller, string, bool) error {
	return f.failure()
}
func (f *fake) Runs(context.Context, access.Caller, string) ([]events.Run, error) {
	return []events.Run{{ID: "run-1", Number: 1, Status: "failed", Cause: "the daemon was killed", StartedAt: born, EndedAt: born.Add(time.Minute)},
		{ID: "run-2", Number: 2, Status: "running", StartedAt: born}}, f.failure()
}

func (f *fake) RunEvents(_ context.Context, _ access.Caller, _, runID string, after int64, _ int, whole bool) (events.EventPage, error) {
	url := "https://a.example/?token=***"
	if whole {
		url = "https://a.example/?token=abc"
	}
	return events.EventPage{Events: []events.Event{{RunID: runID, Sequence: after + 1, Type: "navigated", At: born.UTC(), Data: []byte(`{"url":"` + url + `"}`)},
		{RunID: runID, Sequence: after + 2, Type: "paused", At: born.UTC(), Data: []byte(`{}`)}}, First: 1, LatestExclusive: after + 3, NextAfter: after + 2}, f.failure()
}

// fakeFeed gives entries, and then waits or ends.
type fakeFeed struct {
	entries []events.StreamEvent
	waits   bool
	closed  chan struct{}
}

func (f *fakeFeed) Next(ctx context.Context) (events.StreamEvent, error) {
	if len(f.entries) > 0 {
		e := f.entries[0]
		f.entries = f.entries[1:]
		return e, nil
	}
	if f.waits {
		<-ctx.Done()
		return events.StreamEvent{}, ctx.Err()
	}
	return events.StreamEvent{}, io.EOF
}

func (f *fakeFeed) Close() { close(f.closed) }

func (f *fake) Follow(_ context.Context, _ access.Caller, id string, asked events.FollowRequest) (events.Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follows = append(f.follows, asked)
	feed := &fakeFeed{waits: f.feedWaits, closed: make(chan struct{})}
	if id == liveID {
		feed.entries = f.entries
	}
	f.feed = feed
	return feed, f.err
}

func (f *fake) Ready(context.Context) error { return f.failure() }
