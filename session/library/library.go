// Package library manages what needs no live session: stored snapshots, users' defaults,
// uploaded extensions, and the rules by which snapshots are removed.
//
// [Snapshots] opens and removes stored snapshots. [Library] answers callers' requests
// about them. [Pruner] applies retention policies. [Extensions] manages users' uploads.
// Interfaces give access to sessions.
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

// Records reads the records of snapshots; see [profiles.SnapshotStore].
type Records interface {
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	Snapshots(ctx context.Context, f profiles.SnapshotFilter) (page []profiles.Snapshot, next string, err error)
}

// DefaultRecords reads and writes users' defaults; see [profiles.DefaultStore].
type DefaultRecords interface {
	Default(ctx context.Context, userID string) (profiles.Default, error)
	SetDefault(ctx context.Context, userID, snapshotID string, ifVersion *int64, at time.Time) (profiles.Default, error)
	DefaultHistory(ctx context.Context, userID string, limit int, startAfter string) (page []profiles.PastDefault, next string, err error)
}

// Archives streams the archives of opened snapshots; see [snapshot.Vault].
type Archives interface {
	OpenArchive(ctx context.Context, s snapshot.Snapshot) (io.ReadCloser, error)
	OpenSealed(ctx context.Context, s snapshot.Snapshot, to []string) (*snapshot.SealedArchive, error)
}

// Sessions is what a Library needs of the sessions.
type Sessions interface {
	// Record returns a session's record if the caller has the permission p for it, else
	// the error to return.
	Record(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error)
	// DefaultChanged must be called after a change of a user's default.
	DefaultChanged()
	// ReadStorage starts a Chrome with a snapshot that the caller holds. It returns the
	// snapshot's document with what scripts read in Chrome, and the restore's report
	// lines. The Chrome counts for the quotas of sessions of the user and of the caller's key.
	ReadStorage(ctx context.Context, c access.Caller, userID string, saved snapshot.Snapshot) (state.Document, []state.Component, error)
}

// Keys are the callers' API keys; see [access.Keys].
type Keys interface {
	// CallContext returns a context that ends with ctx or when the caller's key is deleted.
	CallContext(ctx context.Context, c access.Caller) (_ context.Context, leave func(), err error)
}

// Turns limits how many costly calls run at once, at most one for each user.
type Turns interface {
	// Take waits for a turn of this user until ctx ends. leave ends the turn; it is
	// called once.
	Take(ctx context.Context, userID string) (leave func(), err error)
}

// MaxReadings is how many state documents are compared or exported at once: a document of
// 64 MiB takes many times that in memory.
const MaxReadings = 2

// Deps is what New needs. All fields are required.
type Deps struct {
	Records   Records
	Defaults  DefaultRecords
	Snapshots *Snapshots
	Archives  Archives
	Sessions  Sessions
	Keys      Keys
	Readings  Turns // limits readings to [MaxReadings]
	Now       func() time.Time
	Log       *slog.Logger
}

// Library answers callers' requests about stored snapshots and defaults. Each method
// checks the caller's rights; what belongs to another user counts as not found. Its
// methods are safe for concurrent use.
type Library struct {
	records     Records
	defaults    DefaultRecords
	snapshots   *Snapshots
	archives    Archives
	sessions    Sessions
	keys        Keys
	readings    Turns
	verifySlots chan struct{} // one value for each snapshot that is being verified
	now         func() time.Time
	log         *slog.Logger
}

// New makes a Library.
func New(d Deps) *Library {
	return &Library{records: d.Records, defaults: d.Defaults, snapshots: d.Snapshots, archives: d.Archives, sessions: d.Sessions, keys: d.Keys,
		readings: d.Readings, verifySlots: make(chan struct{}, maxVerifying), now: d.Now, log: d.Log}
}

// requestEnded returns the error of work whose request has ended; nil for nil.
func requestEnded(err error) error {
	return fault.Wrap(err, fault.Timeout, "library.read", "the request ended before the work was done")
}
