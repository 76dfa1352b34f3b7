package api

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

const (
	goodKey    = "sk-secret-key"
	goodTicket = "session-ticket"
	viewTicket = "view-ticket"
	oneTicket  = "connect-ticket"
	liveID     = "live-1"
	endedID    = "ended-1"
	crashedID  = "crashed-1" // its Chrome is being started again
	failedID   = "failed-1"
)

var born = time.Date(2026, 11, 20, 19, 0, 0, 0, time.FixedZone("CET", 3600))

// fake is a Service with two sessions, of which it keeps what it was asked.
// Whatever fails, fails with err; what panics, does so by panics.
type fake struct {
	mu      sync.Mutex
	creates []session.Create
	ends    []session.EndRequest

	checkpoints []session.CheckpointRequest
	said        []agent.MessageRequest
	notes       []agent.NoteChange

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
	large    []byte // of a state or an archive, if set

	entries   []events.StreamEvent // of the live session's feed
	feedWaits bool                 // it does not end
	feed      *fakeFeed            // the one that was asked for last
	follows   []events.FollowRequest
}

func (f *fake) Attach(string) (func(), error) { return func() {}, nil }

func (f *fake) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("boom")
	}
	return f.err
}

func caller() access.Caller {
	return access.Caller{KeyID: "key-1", UserID: "alice", Rights: []access.Right{access.RightUse}}
}

func (f *fake) Deliveries(context.Context, access.Caller, string, int, string) ([]events.Delivery, string, error) {
	d := events.Delivery{ID: "d-1", URL: "https://hooks.example/", Event: "session.created", At: born, SessionID: liveID, UserID: "alice",
		State: "pending", Attempts: 1, NextAt: born, LastAt: born, LastError: "the receiver answered 500"}
	return []events.Delivery{d, {ID: "d-0", URL: "https://hooks.example/", Event: "session.deleted", At: born, SessionID: endedID, UserID: "alice", State: "delivered"}}, "d-0", f.failure()
}

func (f *fake) Resend(ctx context.Context, c access.Caller, _ string) (events.Delivery, error) {
	page, _, err := f.Deliveries(ctx, c, "", 0, "")
	return page[0], err
}

func (f *fake) Authenticate(_ context.Context, secret string) (access.Caller, error) {
	if secret != goodKey {
		return access.Caller{}, fault.New(fault.Unauthorized, "fake", "")
	}
	return caller(), nil
}

func (f *fake) AuthorizeTicket(_ context.Context, ticket, id string, p session.Purpose) (access.Caller, error) {
	if (ticket != goodTicket || p != session.PurposeCDP) && (ticket != viewTicket || p != session.PurposeView) || id != liveID {
		return access.Caller{}, fault.New(fault.Unauthorized, "fake", "")
	}
	return caller(), nil
}

func (f *fake) NewTicket(context.Context, access.Caller) (string, time.Time, error) {
	return oneTicket, born.Add(time.Minute), f.failure()
}

func (f *fake) RedeemTicket(_ context.Context, ticket string) (access.Caller, error) {
	if ticket != oneTicket {
		return access.Caller{}, fault.New(fault.Unauthorized, "fake", "")
	}
	return caller(), nil
}

func info(id string) session.Info {
	s := profiles.Session{
		ID: id, UserID: "alice", AgentName: "agi-0", Engine: "chrome", Status: profiles.StatusReady,
		CreatedAt: born, ExpiresAt: born.Add(time.Hour),
	}
	i := session.Info{Session: s, Tickets: map[session.Purpose]string{session.PurposeCDP: goodTicket, session.PurposeView: viewTicket}, Restored: &restore.Report{
		Source: restore.Source{Type: restore.SourceUserDefault, ID: "alice"}, SnapshotID: "snap-1",
		RequestedMode: "memory", Mode: "filesystem", Path: "cold", FallbackReason: "evicted",
		Datadir: state.DatadirClean, Chrome: restore.Versions{Saved: "156", Running: "156"}, Verification: "ok",
	}}
	i.AutoSaved = &session.AutoSaved{AutoSave: session.AutoSave{Interval: time.Minute, Login: true, Keep: 3}, SnapshotID: "snap-1", At: born, Failures: 1, Error: "no room"}
	if id == crashedID || id == failedID {
		i.Status, i.Restarting = profiles.StatusError, id == crashedID
	}
	if id == endedID {
		i.AutoSaved = nil
		i.Status, i.EndedAt, i.Tickets, i.Restored = profiles.StatusCompleted, born.Add(time.Minute), nil, nil
		i.Outcome, _ = json.Marshal(endAnswer())
	}
	return i
}

func snapshotInfo() library.SnapshotInfo {
	return library.SnapshotInfo{
		ID: "snap-1", SessionID: endedID, UserID: "alice", Mode: "filesystem", CreatedAt: born, ExpiresAt: &born,
		SizeBytes: 45000, Datadir: "clean", Chrome: "156", Engine: "chrome",
	}
}

func endAnswer() session.EndAnswer {
	s := snapshotInfo()
	return session.EndAnswer{Success: true, Deleted: true, Message: "saved", Snapshot: &s, Default: &session.DefaultOutcome{Moved: true, Version: 2}}
}

func (f *fake) Create(ctx context.Context, _ access.Caller, r session.Create) (session.Info, error) {
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

func (f *fake) Get(_ context.Context, _ access.Caller, id string) (session.Info, error) {
	if id != liveID && id != endedID && id != crashedID && id != failedID {
		return session.Info{}, fault.New(fault.SessionNotFound, "fake", "no session %s", id)
	}
	return info(id), f.failure()
}

func (f *fake) List(_ context.Context, _ access.Caller, r session.ListRequest) ([]session.Info, string, error) {
	return []session.Info{info(liveID), info(endedID)}, "ended-1", f.failure()
}

func (f *fake) End(ctx context.Context, _ access.Caller, id string, r session.EndRequest) (session.EndAnswer, error) {
	if err := ctx.Err(); err != nil {
		return session.EndAnswer{}, err
	}
	f.mu.Lock()
	f.ends, f.ended = append(f.ends, r), append(f.ended, id)
	f.mu.Unlock()
	return endAnswer(), f.failure()
}

func (f *fake) EndAll(_ context.Context, _ access.Caller, r session.EndAllRequest) (session.EndAnswer, error) {
	f.mu.Lock()
	f.users = append(f.users, r.UserID)
	f.mu.Unlock()
	return session.EndAnswer{Success: true}, f.failure()
}

func (f *fake) Checkpoint(_ context.Context, _ access.Caller, id string, r session.CheckpointRequest) (session.CheckpointAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checkpoints = append(f.checkpoints, r)
	return session.CheckpointAnswer{Success: true, Snapshot: snapshotInfo(), Default: &session.DefaultOutcome{Moved: true, Version: 3},
		Unchanged: r.Label == "same", PausedMS: 12.5}, f.err
}

func (f *fake) RestoreReport(_ context.Context, _ access.Caller, id string) (restore.Report, error) {
	return *info(liveID).Restored, f.failure()
}

func (f *fake) Status(context.Context, access.Caller, string) (agent.Status, error) {
	return agent.Status{Status: "ready", SessionStatus: "ready", ExecutionStatus: "running"}, f.failure()
}

func (f *fake) Pause(context.Context, access.Caller, string) (session.Acknowledged, error) {
	return session.Acknowledged{Success: true, Status: "paused"}, f.failure()
}

func (f *fake) Resume(context.Context, access.Caller, string) (session.Acknowledged, error) {
	return session.Acknowledged{Success: true, Status: "resumed"}, f.failure()
}

func (f *fake) Cancel(context.Context, access.Caller, string) (bool, error) {
	return true, f.failure()
}

func (f *fake) Send(_ context.Context, _ access.Caller, _ string, m agent.MessageRequest) (agent.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, m)
	return agent.Message{ID: 7}, f.err
}

func (f *fake) Messages(_ context.Context, _ access.Caller, _ string, after int64, whole bool) (agent.Conversation, error) {
	return agent.Conversation{Messages: []agent.Message{
		{ID: after + 1, Type: "QUESTION", Content: fmt.Sprint("whole: ", whole), At: born.UTC(), Metadata: []byte(`{"start_url":"https://a.example/"}`)},
		{ID: after + 2, Type: "USER", Content: "Yes", At: born.UTC(), Metadata: []byte(`{}`)}},
		More: true, HasAgent: true, Status: agent.Status{Status: "waiting_for_input"}}, f.failure()
}

func note(id string) agent.Note {
	return agent.Note{SessionID: id, Event: "checkpoint", Data: agent.NoteData{OpenTasks: []string{"sleep"}}, CreatedAt: born, UpdatedAt: born}
}

func (f *fake) PutNote(_ context.Context, _ access.Caller, n agent.NoteChange) (agent.Note, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, n)
	return note(n.SessionID), f.err
}

func (f *fake) Note(_ context.Context, _ access.Caller, id string) (agent.Note, error) {
	return note(id), f.failure()
}

func (f *fake) LatestNote(context.Context, access.Caller, string) (agent.Note, error) {
	return note("any"), f.failure()
}

func (f *fake) SessionNotes(_ context.Context, _ access.Caller, id string) (agent.Note, error) {
	return note(id), f.failure()
}

func (f *fake) Navigate(_ context.Context, _ access.Caller, _, url string) (string, error) {
	return url, f.failure()
}

func (f *fake) Screenshot(context.Context, access.Caller, string) (session.Screenshot, error) {
	return session.Screenshot{JPEG: []byte("\xff\xd8jpeg"), URL: "https://a.example/", Title: "A"}, f.failure()
}

func (f *fake) Pages(context.Context, access.Caller, string) ([]session.Page, error) {
	return []session.Page{{ID: "T1", Type: "page", Title: "A", URL: "https://a.example/"}}, f.failure()
}

func (f *fake) BrowserVersion(context.Context, access.Caller, string) (string, string, string, error) {
	return "Chrome/156", "1.3", "Mozilla/5.0", f.failure()
}

func (f *fake) MayDrive(context.Context, access.Caller, string) error { return nil }

func (f *fake) Connect(ctx context.Context, _ access.Caller, id, target string, conn session.Conn) error {
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
