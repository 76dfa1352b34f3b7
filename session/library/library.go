// Package library is what is kept and looked at without a live session: stored
// snapshots, users' defaults, uploaded extensions, and the rules by which snapshots
// go.
//
// [Snapshots] opens stored snapshots and removes them. [Library] answers what callers
// ask of them, [Pruner] applies retention policies, and [Extensions] keeps what users
// upload. What they need of sessions comes through interfaces.
package library

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Records are the records of snapshots that a Library reads; see
// [profiles.SnapshotStore].
type Records interface {
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	Snapshots(ctx context.Context, f profiles.SnapshotFilter) (page []profiles.Snapshot, next string, err error)
}

// DefaultRecords are the versions of users' defaults; see [profiles.DefaultStore].
type DefaultRecords interface {
	Default(ctx context.Context, userID string) (profiles.Default, error)
	SetDefault(ctx context.Context, userID, snapshotID string, ifVersion *int64, at time.Time) (profiles.Default, error)
	DefaultHistory(ctx context.Context, userID string, limit int, startAfter string) (page []profiles.PastDefault, next string, err error)
}

// Archives streams archives of opened snapshots; see [snapshot.Vault].
type Archives interface {
	OpenArchive(ctx context.Context, s snapshot.Snapshot) (io.ReadCloser, error)
	OpenSealed(ctx context.Context, s snapshot.Snapshot, to []string) (*snapshot.SealedArchive, error)
}

// Sessions is what a Library asks of the sessions.
type Sessions interface {
	// Record returns a session's record if the caller may do p with it, else the
	// error that refuses it.
	Record(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error)
	// DefaultChanged is called after a user's default was changed.
	DefaultChanged()
	// ReadOut starts a Chrome on a snapshot that the caller holds, and returns its
	// document with what scripts read there, and the lines of the restore's report.
	ReadOut(ctx context.Context, saved snapshot.Snapshot) (state.Document, []state.Component, error)
}

// Keys are the API keys that callers come with; see [access.Keys].
type Keys interface {
	// While is ctx until the caller's key is deleted.
	While(ctx context.Context, c access.Caller) (_ context.Context, leave func(), err error)
}

// Turns bound how many costly calls run at once, one of each user.
type Turns interface {
	// Take waits for a user's turn until ctx ends. leave gives it back, once.
	Take(ctx context.Context, userID string) (leave func(), err error)
}

// MaxReadings is how many state documents may be compared or exported at once: one
// of 64 MiB takes many times that in memory.
const MaxReadings = 2

// Deps are what a Library stands on. All are needed.
type Deps struct {
	Records   Records
	Defaults  DefaultRecords
	Snapshots *Snapshots
	Archives  Archives
	Sessions  Sessions
	Keys      Keys
	Readings  Turns // of [MaxReadings]
	Now       func() time.Time
	Log       *slog.Logger
}

// Library answers what callers ask of stored snapshots and of defaults. Each method
// checks what the caller may do; what belongs to another user is not found. Its
// methods are safe for concurrent use.
type Library struct {
	records   Records
	defaults  DefaultRecords
	snapshots *Snapshots
	archives  Archives
	sessions  Sessions
	keys      Keys
	readings  Turns
	verifying chan struct{} // one for each snapshot that is being verified
	now       func() time.Time
	log       *slog.Logger
}

// New makes a Library.
func New(d Deps) *Library {
	return &Library{records: d.Records, defaults: d.Defaults, snapshots: d.Snapshots, archives: d.Archives, sessions: d.Sessions, keys: d.Keys,
		readings: d.Readings, verifying: make(chan struct{}, maxVerifying), now: d.Now, log: d.Log}
}

// gaveUp is the error of work whose request has ended; nil for nil.
func gaveUp(err error) error {
	return fault.Wrap(err, fault.Timeout, "library.read", "the request was given up")
}
