// Package rescue saves what the sessions of a dead daemon left.
//
// A rescue starts from a session's record and its run directory. It saves the user data
// directory as a rescue snapshot (see [save.Saver.Rescue]) and ends the session and its
// runs. If the store or the catalogue fails, the data is kept and the rescue is tried
// again. A caller that needs such a session waits with [Rescues.Await].
package rescue

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot"
)

// Records is what rescues need of the catalogue; see [profiles.SessionStore],
// [profiles.SnapshotStore] and [profiles.RunStore].
type Records interface {
	Session(ctx context.Context, id string) (profiles.Session, error)
	Sessions(ctx context.Context, f profiles.SessionFilter) (page []profiles.Session, next string, err error)
	UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error)
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	OpenRuns(ctx context.Context) ([]profiles.Run, error)
	EndRun(ctx context.Context, end profiles.RunEnd, keep profiles.EventBounds) (profiles.Run, error)
}

// Left is what rescues of a node need of the catalogue too; see [profiles.LeftStore].
type Left interface {
	LeftSessions(ctx context.Context, nodeID string) ([]profiles.LeftSession, error)
	AddLeft(ctx context.Context, l profiles.LeftSession) error
	ForgetLeft(ctx context.Context, nodeID, runDir string) error
}

// Archives removes incomplete saves of the dead daemon, and unseals what it stored; see
// [snapshot.Vault].
type Archives interface {
	RemoveUncommitted(ctx context.Context, loc snapshot.Location, committed func(id string) (bool, error)) error
	Unseal(sealed []byte) ([]byte, error)
}

// Saver makes snapshots; see [save.Saver].
type Saver interface {
	Rescue(ctx context.Context, j save.Job) save.EndResult
	EndSession(ctx context.Context, e profiles.End, crash bool) error
}

// Notices makes the deliveries of webhooks; see events.Notices.
type Notices interface {
	Of(rec profiles.Session, events ...string) []profiles.Notice
	Wake()
}

// Config is what New needs.
type Config struct {
	Records  Records
	NodeID   string // of this node; "": the daemon is none, and all sessions are its own
	Left     Left   // nil if the daemon is no node
	Archives Archives
	Saver    Saver
	Notices  Notices
	// Ended is called when a session was rescued, or when that proved impossible (err).
	Ended func(rec profiles.Session, snapshotID string, err error)
	// FirstPause is the time before the first retry of a failed rescue; 0: the default.
	FirstPause time.Duration
	Now        func() time.Time
	Log        *slog.Logger
}
