package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/drive"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// fakeSessions has two sessions and records the calls for them.
type fakeSessions struct {
	*failing
	creates     []request.Create
	ends        []request.End
	checkpoints []request.Checkpoint
	ended       []string
	endedUsers  []string
	block       chan struct{} // Create waits for it
	existed     bool
	serve       func(ctx context.Context, conn session.Conn) error
	// The errors of Attach, AttachViewer and OpenSocket.
	fullOfClients, fullOfViewers, fullOfStreams error
	view                                        func(ctx context.Context, conn session.ViewConn) error
}

func (f *fakeSessions) Attach(context.Context, access.Caller, string) (func(), error) {
	return func() {}, f.fullOfClients
}

func (f *fakeSessions) AttachViewer(context.Context, access.Caller, string) (func(), error) {
	return func() {}, f.fullOfViewers
}

func (f *fakeSessions) OpenSocket(context.Context, access.Caller, string) (func(), error) {
	return func() {}, f.fullOfStreams
}

func (f *fakeSessions) AuthorizeTicket(_ context.Context, ticket, id string, p access.Purpose) (access.Caller, error) {
	fits := map[access.Purpose]string{access.PurposeCDP: goodTicket, access.PurposeView: viewTicket, access.PurposeControl: controlTicket, access.PurposeSave: controlTicket, access.PurposeSharedControl: sharedTicket}
	if ticket == "" || fits[p] != ticket || id != liveID {
		return access.Caller{}, fault.New(fault.Unauthorized, "fake", "")
	}
	return caller(), nil
}

func info(id string) answer.Info {
	s := profiles.Session{
		ID: id, UserID: "alice", AgentName: "agi-0", Engine: "chrome", Status: profiles.StatusReady,
		CreatedAt: born, ExpiresAt: born.Add(time.Hour),
	}
	i := answer.Info{Session: s, Tickets: map[access.Purpose]string{access.PurposeCDP: goodTicket, access.PurposeView: viewTicket}, Restored: &restore.Report{
		Source: restore.Source{Type: restore.SourceUserDefault, ID: "alice"}, SnapshotID: "snap-1",
		RequestedMode: "memory", Mode: "filesystem", Path: "cold", FallbackReason: "evicted",
		Datadir: state.DatadirClean, Chrome: restore.Versions{Saved: "156", Running: "156"}, Verification: "ok",
	}}
	i.AutoSaved = &autosave.Status{Settings: autosave.Settings{Interval: time.Minute, Login: true, Keep: 3}, SnapshotID: "snap-1", At: born, Failures: 1, Error: "no room"}
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

func endAnswer() save.EndAnswer {
	s := snapshotInfo()
	return save.EndAnswer{Success: true, Deleted: true, Message: "saved", Snapshot: &s, Default: &save.DefaultOutcome{Moved: true, Version: 2}}
}

func (f *fakeSessions) Create(ctx context.Context, _ access.Caller, r request.Create) (answer.Info, error) {
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

func (f *fakeSessions) Examine(ctx context.Context, c access.Caller, id string) (answer.Info, error) {
	return f.Get(ctx, c, id)
}

func (f *fakeSessions) Get(_ context.Context, _ access.Caller, id string) (answer.Info, error) {
	if id != liveID && id != endedID && id != crashedID && id != failedID {
		return answer.Info{}, fault.New(fault.SessionNotFound, "fake", "no session %s", id)
	}
	return info(id), f.failure()
}

func (f *fakeSessions) List(_ context.Context, _ access.Caller, r request.List) ([]answer.Info, string, error) {
	return []answer.Info{info(liveID), info(endedID)}, "ended-1", f.failure()
}

func (f *fakeSessions) Here(ctx context.Context, c access.Caller, ids []string) (found []answer.Info, err error) {
	for _, id := range ids {
		one, err := f.Get(ctx, c, id)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

func (f *fakeSessions) End(ctx context.Context, _ access.Caller, id string, r request.End) (save.EndAnswer, error) {
	if err := ctx.Err(); err != nil {
		return save.EndAnswer{}, err
	}
	f.mu.Lock()
	f.ends, f.ended = append(f.ends, r), append(f.ended, id)
	f.mu.Unlock()
	answer := endAnswer()
	if id == endedID && r.SaveAsDefault {
		answer.Success, answer.Code, answer.Default = false, fault.VersionConflict, &save.DefaultOutcome{Version: 3, Reason: "version 3 is current"}
	}
	return answer, f.failure()
}

func (f *fakeSessions) EndAll(_ context.Context, _ access.Caller, r request.EndAll) (save.EndAnswer, error) {
	f.mu.Lock()
	f.endedUsers = append(f.endedUsers, r.UserID)
	f.mu.Unlock()
	return save.EndAnswer{Success: true}, f.failure()
}

func (f *fakeSessions) Checkpoint(_ context.Context, _ access.Caller, id string, r request.Checkpoint) (save.CheckpointAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checkpoints = append(f.checkpoints, r)
	return save.CheckpointAnswer{Success: true, Snapshot: snapshotInfo(), Default: &save.DefaultOutcome{Moved: true, Version: 3},
		Unchanged: r.Label == "same", PausedMS: 12.5}, f.err
}

func (f *fakeSessions) RestoreReport(_ context.Context, _ access.Caller, id string) (restore.Report, error) {
	return *info(liveID).Restored, f.failure()
}

func (f *fakeSessions) Status(context.Context, access.Caller, string) (agent.Status, error) {
	return agent.Status{Status: "ready", SessionStatus: "ready", ExecutionStatus: "running"}, f.failure()
}

func (f *fakeSessions) Pause(context.Context, access.Caller, string) (answer.Acknowledgement, error) {
	return answer.Acknowledgement{Success: true, Status: "paused"}, f.failure()
}

func (f *fakeSessions) Resume(context.Context, access.Caller, string, string) (answer.Acknowledgement, error) {
	return answer.Acknowledgement{Success: true, Status: "resumed"}, f.failure()
}

func (f *fakeSessions) Navigate(_ context.Context, _ access.Caller, _, url string) (string, error) {
	return url, f.failure()
}

func (f *fakeSessions) Screenshot(context.Context, access.Caller, string) (drive.Screenshot, error) {
	return drive.Screenshot{JPEG: []byte("\xff\xd8jpeg"), URL: "https://a.example/", Title: "A"}, f.failure()
}

func (f *fakeSessions) Pages(context.Context, access.Caller, string) ([]drive.Page, error) {
	return []drive.Page{{ID: "T1", Type: "page", Title: "A", URL: "https://a.example/"}}, f.failure()
}

func (f *fakeSessions) BrowserVersion(context.Context, access.Caller, string) (string, string, string, error) {
	return "Chrome/156", "1.3", "Mozilla/5.0", f.failure()
}

func (f *fakeSessions) MayDrive(context.Context, access.Caller, string) error { return nil }

func (f *fakeSessions) View(ctx context.Context, _ access.Caller, _ string, conn session.ViewConn) error {
	if f.view != nil {
		return f.view(ctx, conn)
	}
	return conn.WriteBinary(ctx, []byte("picture"))
}

func (f *fakeSessions) Connect(ctx context.Context, _ access.Caller, id string, client session.Client, conn session.Conn) error {
	if f.serve != nil {
		return f.serve(ctx, conn)
	}
	for {
		msg, err := conn.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the client disconnected
		}
		if err := conn.Write(ctx, append([]byte(client.TargetID+":"), msg...)); err != nil {
			return err
		}
	}
}

func link() access.Link {
	return access.Link{ID: "link-1", Control: true, ExpiresAt: born.Add(time.Hour), Viewers: 2}
}

func (f *fakeSessions) Share(_ context.Context, _ access.Caller, _ string, control bool, life time.Duration) (access.Link, string, error) {
	l := link()
	l.Control, l.ExpiresAt, l.Viewers = control, born.Add(life), 0
	return l, "shared-ticket", f.failure()
}

func (f *fakeSessions) Links(context.Context, access.Caller, string) ([]access.Link, error) {
	return []access.Link{link()}, f.failure()
}

func (f *fakeSessions) Revoke(_ context.Context, _ access.Caller, _, linkID string) error {
	if linkID != link().ID {
		return fault.New(fault.LinkNotFound, "fake", "")
	}
	return f.failure()
}

func (f *fakeSessions) Ready(context.Context) error { return f.failure() }
