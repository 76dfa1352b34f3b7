package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/api/apitest"
	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/journal"
	"github.com/stasisd/stasis/state"
)

const (
	goodKey    = "sk-secret-key"
	goodTicket = "session-ticket"
	oneTicket  = "connect-ticket"
	liveID     = "live-1"
	endedID    = "ended-1"
)

var born = time.Date(2026, 11, 20, 19, 0, 0, 0, time.FixedZone("CET", 3600))

// fake is a Service with two sessions, of which it keeps what it was asked.
// Whatever fails, fails with err; what panics, does so by panics.
type fake struct {
	mu      sync.Mutex
	creates []session.Create
	ends    []session.EndRequest

	checkpoints []session.CheckpointRequest
	said        []session.Say
	notes       []session.NoteChange

	ended   []string
	users   []string
	uploads map[string][]byte
	err     error
	panics  bool
	block   chan struct{} // Create waits for it
	existed bool
	serve   func(ctx context.Context, conn session.Conn) error
	dir     string

	settings session.Settings

	entries   []journal.Entry // of the live session's feed
	feedWaits bool            // it does not end
	feed      *fakeFeed       // the one that was asked for last
	follows   []session.Follow
}

func (f *fake) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("boom")
	}
	return f.err
}

func caller() session.Caller {
	return session.Caller{KeyID: "key-1", UserID: "alice", Rights: []profiles.Right{profiles.RightUse}}
}

func (f *fake) Authenticate(_ context.Context, secret string) (session.Caller, error) {
	if secret != goodKey {
		return session.Caller{}, fault.New(fault.Unauthorized, "fake", "")
	}
	return caller(), nil
}

func (f *fake) AuthorizeTicket(_ context.Context, ticket, id string) (session.Caller, error) {
	if ticket != goodTicket || id != liveID {
		return session.Caller{}, fault.New(fault.Unauthorized, "fake", "")
	}
	return caller(), nil
}

func (f *fake) NewTicket(context.Context, session.Caller) (string, time.Time, error) {
	return oneTicket, born.Add(time.Minute), f.failure()
}

func (f *fake) RedeemTicket(_ context.Context, ticket string) (session.Caller, error) {
	if ticket != oneTicket {
		return session.Caller{}, fault.New(fault.Unauthorized, "fake", "")
	}
	return caller(), nil
}

func info(id string) session.Info {
	s := profiles.Session{
		ID: id, UserID: "alice", AgentName: "agi-0", Engine: "chrome", Status: profiles.StatusReady,
		CreatedAt: born, ExpiresAt: born.Add(time.Hour),
	}
	i := session.Info{Session: s, Ticket: goodTicket, Restored: &session.RestoreReport{
		Source: session.Source{Type: session.SourceUserDefault, ID: "alice"}, SnapshotID: "snap-1",
		RequestedMode: "memory", Mode: "filesystem", Path: "cold", FallbackReason: "evicted",
		Datadir: state.DatadirClean, Chrome: session.Versions{Saved: "156", Running: "156"}, Verification: "ok",
	}}
	i.AutoSaved = &session.AutoSaved{AutoSave: session.AutoSave{Interval: time.Minute, Login: true, Keep: 3}, SnapshotID: "snap-1", At: born, Failures: 1, Error: "no room"}
	if id == endedID {
		i.AutoSaved = nil
		i.Status, i.EndedAt, i.Ticket, i.Restored = profiles.StatusCompleted, born.Add(time.Minute), "", nil
		i.Outcome, _ = json.Marshal(endAnswer())
	}
	return i
}

func snapshotInfo() session.SnapshotInfo {
	return session.SnapshotInfo{
		ID: "snap-1", SessionID: endedID, UserID: "alice", Mode: "filesystem", CreatedAt: born, ExpiresAt: &born,
		SizeBytes: 45000, Datadir: "clean", Chrome: "156", Engine: "chrome",
	}
}

func endAnswer() session.EndAnswer {
	s := snapshotInfo()
	return session.EndAnswer{Success: true, Deleted: true, Message: "saved", Snapshot: &s, Default: &session.DefaultOutcome{Moved: true, Version: 2}}
}

func (f *fake) Create(ctx context.Context, _ session.Caller, r session.Create) (session.Info, error) {
	f.mu.Lock()
	f.creates = append(f.creates, r)
	block, existed := f.block, f.existed
	f.mu.Unlock()
	if block != nil {
		<-block
	}
	i := info(liveID)
	i.Existing = existed
	return i, f.failure()
}

func (f *fake) Get(_ context.Context, _ session.Caller, id string) (session.Info, error) {
	if id != liveID && id != endedID {
		return session.Info{}, fault.New(fault.SessionNotFound, "fake", "no session %s", id)
	}
	return info(id), f.failure()
}

func (f *fake) List(_ context.Context, _ session.Caller, r session.ListRequest) ([]session.Info, string, error) {
	return []session.Info{info(liveID), info(endedID)}, "ended-1", f.failure()
}

func (f *fake) End(ctx context.Context, _ session.Caller, id string, r session.EndRequest) (session.EndAnswer, error) {
	if err := ctx.Err(); err != nil {
		return session.EndAnswer{}, err
	}
	f.mu.Lock()
	f.ends, f.ended = append(f.ends, r), append(f.ended, id)
	f.mu.Unlock()
	return endAnswer(), f.failure()
}

func (f *fake) EndAll(_ context.Context, _ session.Caller, r session.EndAllRequest) (session.EndAnswer, error) {
	f.mu.Lock()
	f.users = append(f.users, r.UserID)
	f.mu.Unlock()
	return session.EndAnswer{Success: true}, f.failure()
}

func (f *fake) Checkpoint(_ context.Context, _ session.Caller, id string, r session.CheckpointRequest) (session.CheckpointAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checkpoints = append(f.checkpoints, r)
	return session.CheckpointAnswer{Success: true, Snapshot: snapshotInfo(), Default: &session.DefaultOutcome{Moved: true, Version: 3},
		Unchanged: r.Label == "same", PausedMS: 12.5}, f.err
}

func (f *fake) RestoreReport(_ context.Context, _ session.Caller, id string) (session.RestoreReport, error) {
	return *info(liveID).Restored, f.failure()
}

func (f *fake) Status(context.Context, session.Caller, string) (session.StatusAnswer, error) {
	return session.StatusAnswer{Status: "ready", SessionStatus: "ready", ExecutionStatus: "running"}, f.failure()
}

func (f *fake) Pause(context.Context, session.Caller, string) (session.Acknowledged, error) {
	return session.Acknowledged{Success: true, Status: "paused"}, f.failure()
}

func (f *fake) Resume(context.Context, session.Caller, string) (session.Acknowledged, error) {
	return session.Acknowledged{Success: true, Status: "resumed"}, f.failure()
}

func (f *fake) Cancel(context.Context, session.Caller, string) (session.Acknowledged, error) {
	return session.Acknowledged{Success: true, Status: "cancelled"}, f.failure()
}

func (f *fake) Say(_ context.Context, _ session.Caller, _ string, m session.Say) (profiles.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, m)
	return profiles.Message{ID: 7}, f.err
}

func (f *fake) Messages(_ context.Context, _ session.Caller, _ string, after int64, whole bool) (session.Conversation, error) {
	return session.Conversation{Messages: []profiles.Message{
		{ID: after + 1, Type: "QUESTION", Content: fmt.Sprint("whole: ", whole), At: born, Metadata: []byte(`{"start_url":"https://a.example/"}`)},
		{ID: after + 2, Type: "USER", Content: "Yes", At: born}},
		More: true, HasAgent: true, Status: session.StatusAnswer{Status: "waiting_for_input"}}, f.failure()
}

func note(id string) session.Note {
	return session.Note{SessionID: id, Event: "checkpoint", Data: session.NoteData{OpenTasks: []string{"sleep"}}, CreatedAt: born, UpdatedAt: born}
}

func (f *fake) PutNote(_ context.Context, _ session.Caller, n session.NoteChange) (session.Note, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, n)
	return note(n.SessionID), f.err
}

func (f *fake) Note(_ context.Context, _ session.Caller, id string) (session.Note, error) {
	return note(id), f.failure()
}

func (f *fake) LatestNote(context.Context, session.Caller, string) (session.Note, error) {
	return note("any"), f.failure()
}

func (f *fake) SessionNotes(_ context.Context, _ session.Caller, id string) (session.Note, error) {
	return note(id), f.failure()
}

func (f *fake) Navigate(_ context.Context, _ session.Caller, _, url string) (string, error) {
	return url, f.failure()
}

func (f *fake) Screenshot(context.Context, session.Caller, string) (session.Screenshot, error) {
	return session.Screenshot{JPEG: []byte("\xff\xd8jpeg"), URL: "https://a.example/", Title: "A"}, f.failure()
}

func (f *fake) Pages(context.Context, session.Caller, string) ([]session.Page, error) {
	return []session.Page{{ID: "T1", Type: "page", Title: "A", URL: "https://a.example/"}}, f.failure()
}

func (f *fake) BrowserVersion(context.Context, session.Caller, string) (string, string, string, error) {
	return "Chrome/156", "1.3", "Mozilla/5.0", f.failure()
}

func (f *fake) Connect(ctx context.Context, id, target string, conn session.Conn) error {
	if f.serve != nil {
		return f.serve(ctx, conn)
	}
	for {
		msg, err := conn.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the client left
		}
		if err := conn.Write(ctx, append([]byte(target+":"), msg...)); err != nil {
			return err
		}
	}
}

func (f *fake) CreateKey(_ context.Context, _ session.Caller, name, user string, all bool, r []profiles.Right) (profiles.Key, string, error) {
	return profiles.Key{ID: "key-2", Name: name, UserID: user, AllUsers: all, Rights: r, CreatedAt: born}, "sk-new", f.failure()
}

func (f *fake) Keys(context.Context, session.Caller) ([]profiles.Key, error) {
	return []profiles.Key{{ID: "key-1", Name: "first", UserID: "default", AllUsers: true, CreatedAt: born}}, f.failure()
}
func (f *fake) DeleteKey(context.Context, session.Caller, string) error { return f.failure() }

func (f *fake) version(user string) profiles.Default {
	f.mu.Lock()
	f.users = append(f.users, user)
	f.mu.Unlock()
	return profiles.Default{UserID: user, Version: 2, SnapshotID: "snap-1", MovedAt: born}
}

func (f *fake) Settings(context.Context, session.Caller, string) (session.Settings, error) {
	return f.settings, f.failure()
}

func (f *fake) ChangeSettings(_ context.Context, _ session.Caller, _ string, change func(session.Settings) (session.Settings, error)) (session.Settings, error) {
	set, err := change(f.settings)
	if err != nil {
		return set, err
	}
	f.settings = set
	return set, f.failure()
}

// CheckDefault finds that nobody is logged in.
func (f *fake) CheckDefault(_ context.Context, _ session.Caller, user string) (session.LoginOutcome, error) {
	_ = f.version(user)
	return *outcome(), f.failure()
}

func outcome() *session.LoginOutcome {
	at, status, snap, version := "https://a.example/login", int64(302), "snap-1", int64(2)
	return &session.LoginOutcome{CheckedAt: born.UTC(), URL: &at, Status: &status, SnapshotID: &snap, Version: &version,
		Conditions: []browser.Condition{{Kind: browser.ConditionStatus}}, DurationMS: 640}
}

func (f *fake) Default(_ context.Context, _ session.Caller, user string) (session.DefaultInfo, error) {
	return session.DefaultInfo{Default: f.version(user), LastCheck: outcome()}, f.failure()
}

func (f *fake) SetDefault(_ context.Context, _ session.Caller, user, _ string, _ *int64) (profiles.Default, error) {
	return f.version(user), f.failure()
}
func (f *fake) DeleteDefault(context.Context, session.Caller, string) error { return f.failure() }
func (f *fake) DefaultHistory(_ context.Context, _ session.Caller, user string, _ int, _ string) ([]profiles.PastDefault, string, error) {
	gone := profiles.Default{UserID: user, Version: 3, MovedAt: born}
	return []profiles.PastDefault{{Default: gone}, {Default: f.version(user), Available: true}}, "2", f.failure()
}

func (f *fake) Snapshots(_ context.Context, _ session.Caller, id string, _ int, _ string) ([]session.SnapshotInfo, string, error) {
	if id == liveID {
		return nil, "", f.failure()
	}
	return []session.SnapshotInfo{snapshotInfo()}, "snap-1", f.failure()
}

func (f *fake) AllSnapshots(_ context.Context, _ session.Caller, user string, _ int, _ string) ([]session.SnapshotInfo, string, error) {
	_ = f.version(user)
	return []session.SnapshotInfo{snapshotInfo()}, "snap-1", f.failure()
}

func (f *fake) Snapshot(context.Context, session.Caller, string) (session.SnapshotInfo, error) {
	return snapshotInfo(), f.failure()
}
func (f *fake) Diff(_ context.Context, _ session.Caller, from, to string, values bool) (session.Diff, error) {
	c := state.Change{Name: "cookies", Origin: "a.example", Added: []string{}, Removed: []string{}, Changed: []string{"login"}, Before: 1, After: 1}
	was, is := "1", "2"
	c.Attributes = map[string]map[string]*state.Values{"login": {"expires": {After: &is}, "value": nil}}
	if values {
		c.Values = map[string]state.Values{"login": {Before: &was, After: &is}}
	}
	return session.Diff{From: from, To: to, Changes: []state.Change{c},
		NotCompared: []state.Uncompared{{Name: "hsts", Reason: "it was not counted"}}}, f.failure()
}

// Prune finds one to remove and one to keep.
func (f *fake) Prune(_ context.Context, _ session.Caller, r session.PruneRequest) (session.PruneAnswer, error) {
	f.mu.Lock()
	f.users = append(f.users, r.UserID)
	f.mu.Unlock()
	one := session.PrunedSnapshot{ID: "snap-1", SessionID: endedID, UserID: "alice", CreatedAt: born.UTC(), SizeBytes: 45000}
	a := session.PruneAnswer{DryRun: r.DryRun, RemovedCount: 1, FreedBytes: 45000, Removed: []session.PrunedSnapshot{one},
		KeptCount: 1, KeptBy: map[session.Reason]int{session.KeptDefault: 1}}
	if r.DryRun {
		a.Kept = []session.KeptSnapshot{{PrunedSnapshot: one, Reasons: []session.Reason{session.KeptDefault}}}
	}
	return a, f.failure()
}

// VerifySnapshot finds that a bit has flipped.
func (f *fake) VerifySnapshot(_ context.Context, _ session.Caller, id string) (session.Soundness, error) {
	return session.Soundness{SnapshotID: id, Checked: session.Checked{Document: true},
		Problems: []session.Problem{{Code: fault.ArchiveDamaged, Message: "its archive has another hash"}}, DurationMS: 12}, f.failure()
}

func (f *fake) DeleteSnapshot(context.Context, session.Caller, string) error { return f.failure() }

// What the fake's agents have.
const (
	documentID = "01900000-0000-7000-8000-000000000001"
	manifest   = `{"schemaVersion":"1.0","updatedAt":"2026-11-22T04:34:40.908Z"}`
	document   = `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{"a":[{"b":null}]},"appData":{}}`
)

// SaveDocument remembers the body by session, scope, scope ID, ID and whether it is the latest.
func (f *fake) SaveDocument(_ context.Context, _ session.Caller, at session.AgentScope, id string, body []byte, latest bool) error {
	f.mu.Lock()
	f.uploads[fmt.Sprint(at, id, latest)] = body
	f.mu.Unlock()
	return f.failure()
}

func (f *fake) Document(context.Context, session.Caller, session.AgentScope, string) ([]byte, error) {
	return []byte(document), f.failure()
}

func (f *fake) DocumentIDs(_ context.Context, _ session.Caller, _ session.AgentScope, limit int, _ string) ([]string, string, error) {
	if limit > 1 {
		return nil, "", f.failure()
	}
	return []string{documentID}, documentID, f.failure()
}

func (f *fake) DeleteDocument(context.Context, session.Caller, session.AgentScope, string) error {
	return f.failure()
}

func (f *fake) Manifest(context.Context, session.Caller, session.AgentScope) ([]byte, error) {
	return []byte(manifest), f.failure()
}

func (f *fake) SaveManifest(_ context.Context, _ session.Caller, at session.AgentScope, body []byte) error {
	return f.SaveDocument(context.Background(), session.Caller{}, at, "manifest", body, false)
}
func (f *fake) DeleteDocuments(context.Context, session.Caller, string) error { return f.failure() }

func (f *fake) ListFiles(context.Context, session.Caller, string) ([]session.FileInfo, error) {
	return []session.FileInfo{{Name: "a b.html", Size: 4, ModTime: born}}, f.failure()
}

func (f *fake) OpenFile(_ context.Context, _ session.Caller, _, name string) (*os.File, error) {
	file, err := os.Open(filepath.Join(f.dir, name))
	return file, fault.Wrap(err, fault.FileNotFound, "fake", "")
}

func (f *fake) PutFile(_ context.Context, _ session.Caller, _, name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.uploads[name] = data
	f.mu.Unlock()
	return f.failure()
}
func (f *fake) DeleteFile(context.Context, session.Caller, string, string) error { return f.failure() }

func night() profiles.Extension {
	return profiles.Extension{ID: "abcdefghijklmnopabcdefghijklmnop", UserID: "alice", SHA256: strings.Repeat("a1", 32),
		Name: "Night", Version: "1.0", SizeBytes: 5, CreatedAt: born}
}

// PutExtension finds that a second upload is there already.
func (f *fake) PutExtension(_ context.Context, _ session.Caller, r io.Reader) (profiles.Extension, bool, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return profiles.Extension{}, false, err
	}
	f.mu.Lock()
	_, there := f.uploads["extension"]
	f.uploads["extension"] = data
	f.mu.Unlock()
	return night(), !there, f.failure()
}

func (f *fake) ListExtensions(context.Context, session.Caller) ([]profiles.Extension, error) {
	return []profiles.Extension{night()}, f.failure()
}

func (f *fake) Extension(context.Context, session.Caller, string) (profiles.Extension, error) {
	return night(), f.failure()
}
func (f *fake) DeleteExtension(context.Context, session.Caller, string, bool) error {
	return f.failure()
}
func (f *fake) Runs(context.Context, session.Caller, string) ([]profiles.Run, error) {
	return []profiles.Run{{ID: "run-1", SessionID: endedID, Number: 1, Status: profiles.RunFailed, Cause: "the daemon was killed", StartedAt: born, EndedAt: born.Add(time.Minute)},
		{ID: "run-2", SessionID: endedID, Number: 2, Status: profiles.RunRunning, StartedAt: born}}, f.failure()
}

func (f *fake) RunEvents(_ context.Context, _ session.Caller, _, runID string, after int64, _ int, whole bool) (profiles.EventPage, error) {
	url := "https://a.example/?token=***"
	if whole {
		url = "https://a.example/?token=abc"
	}
	return profiles.EventPage{Events: []profiles.Event{{RunID: runID, Sequence: after + 1, Type: "navigated", At: born, Data: []byte(`{"url":"` + url + `"}`)},
		{RunID: runID, Sequence: after + 2, Type: "paused", At: born}}, First: 1, LatestExclusive: after + 3, NextAfter: after + 2}, f.failure()
}

// fakeFeed gives entries, and then waits or ends.
type fakeFeed struct {
	entries []journal.Entry
	waits   bool
	closed  chan struct{}
}

func (f *fakeFeed) Next(ctx context.Context) (journal.Entry, error) {
	if len(f.entries) > 0 {
		e := f.entries[0]
		f.entries = f.entries[1:]
		return e, nil
	}
	if f.waits {
		<-ctx.Done()
		return journal.Entry{}, ctx.Err()
	}
	return journal.Entry{}, io.EOF
}

func (f *fakeFeed) Close() { close(f.closed) }

func (f *fake) Follow(_ context.Context, _ session.Caller, id string, asked session.Follow) (session.Feed, error) {
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

// fakeAnswers keeps answers in memory.
type fakeAnswers struct {
	mu   sync.Mutex
	kept map[string]profiles.Answer
}

func (a *fakeAnswers) ClaimAnswer(_ context.Context, x profiles.Answer) (profiles.Answer, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.kept[x.Scope+"|"+x.Key]; ok {
		return known, false, nil
	}
	a.kept[x.Scope+"|"+x.Key] = x
	return x, true, nil
}

func (a *fakeAnswers) FinishAnswer(_ context.Context, x profiles.Answer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[x.Scope+"|"+x.Key] = x
	return nil
}

func (a *fakeAnswers) DropAnswer(_ context.Context, scope, key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kept, scope+"|"+key)
	return nil
}

// rig is a server over a fake, and a client whose every exchange is held
// against openapi.yaml.
type rig struct {
	*fake
	answers *fakeAnswers
	server  *Server
	url     string
	client  *http.Client
	log     *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	r := &rig{
		fake: &fake{entries: entries(), uploads: map[string][]byte{}, dir: t.TempDir()}, answers: &fakeAnswers{kept: map[string]profiles.Answer{}},
		log: &lockedBuffer{},
	}
	o := Options{Service: r.fake, Answers: r.answers, Logger: slog.New(slog.NewTextHandler(r.log, nil)), Now: time.Now, MaxUpload: 1 << 10}
	if change != nil {
		change(&o)
	}
	r.server = New(o)
	hs := httptest.NewServer(r.server)
	t.Cleanup(hs.Close)
	validator, err := apitest.New(hs.Client().Transport, func(err error) { t.Errorf("wire: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	r.url, r.client = hs.URL, &http.Client{Transport: validator}
	return r
}

// reply is an answer without its body, which is read and closed already.
type reply struct {
	StatusCode int
	Header     http.Header
}

// do sends a request with the good key; headers are "Name: value". It returns
// the answer and its body.
func (r *rig) do(t *testing.T, method, path, body string, headers ...string) (reply, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Del(name)
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	answer, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header}, string(data)
}
