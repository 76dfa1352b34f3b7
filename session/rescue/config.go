// Package rescue saves what the sessions of a dead daemon left: their user data
// directories, as rescue snapshots, and the ends of their runs.
package rescue

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot"
)

// Records is what rescues need of the catalogue; see [profiles.Catalogue].
type Records interface {
	Session(ctx context.Context, id string) (profiles.Session, error)
	Sessions(ctx context.Context, f profiles.SessionFilter) (page []profiles.Session, next string, err error)
	UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error)
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	OpenRuns(ctx context.Context) ([]profiles.Run, error)
	EndRun(ctx context.Context, end profiles.RunEnd, keep profiles.EventBounds) (profiles.Run, error)
}

// Archives is where the dead daemon may have begun a save; see [snapshot.Vault].
type Archives interface {
	TakeBack(ctx context.Context, loc snapshot.Location, committed func(id string) (bool, error)) error
	Unseal(sealed []byte) ([]byte, error)
}

// Saver makes snapshots; see [save.Saver].
type Saver interface {
	Rescue(ctx context.Context, j save.Job) save.Ended
	EndSession(ctx context.Context, e profiles.End, crash bool) error
}

// Notices make what webhooks are sent; see events.Notices.
type Notices interface {
	Of(rec profiles.Session, events ...string) []profiles.Notice
	Wake()
}

// Config is what Rescues stand on.
type Config struct {
	Records  Records
	Archives Archives
	Saver    Saver
	Notices  Notices
	// FirstPause is how long is waited before a rescue that failed is tried again at
	// first; 0: the usual.
	FirstPause time.Duration
	Now        func() time.Time
	Log        *slog.Logger
}
