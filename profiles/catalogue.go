package profiles

import (
	"context"
	"time"
)

// Catalogue is the durable record. Every method is safe for concurrent use,
// and each one that writes is one transaction: it happens whole or not at
// all. What is not found is a fault with the matching code
// (session_not_found, snapshot_not_found, default_not_found, key_not_found, run_not_found).
// Failures of the database itself are store_full, timeout when the context's
// deadline passed, or store_failed; a cancelled context stays recognisable
// with errors.Is.
//
// Times come back in UTC with at least millisecond precision, empty maps and
// documents come back nil, and a limit that is not positive is none. A cursor
// that the same list never gave is invalid_field; one that was given stays
// valid, whatever is deleted. Callbacks run inside the transaction: they must
// not block or call the catalogue, and their error comes back as it is.
type Catalogue interface {
	// CreateKey records a key. Keys lists them, oldest first.
	CreateKey(ctx context.Context, k Key) error
	Keys(ctx context.Context) ([]Key, error)
	KeyByHash(ctx context.Context, hash [32]byte) (Key, error)
	// Key is the key of an ID; key_not_found where there is none.
	Key(ctx context.Context, id string) (Key, error)
	DeleteKey(ctx context.Context, id string) error

	// User returns what is kept of a user; one that has no record yet comes
	// back with nothing but its ID. UpdateUser reads, changes and writes it in a
	// transaction, and makes the record, as of at, where there is none; its ID
	// and time of creation cannot change.
	User(ctx context.Context, id string) (User, error)
	UpdateUser(ctx context.Context, id string, at time.Time, change func(*User) error) (User, error)
	// UsersWithSettings lists the users that have settings, by ID.
	UsersWithSettings(ctx context.Context) ([]User, error)

	// CreateSession records a new session and its user; a taken ID is
	// session_exists.
	CreateSession(ctx context.Context, s Session) error
	Session(ctx context.Context, id string) (Session, error)
	// Sessions lists newest first (CreatedAt, then ID); next is the cursor for
	// StartAfter, empty at the end.
	Sessions(ctx context.Context, f SessionFilter) (page []Session, next string, err error)
	// UpdateSession reads, changes and writes one session in a transaction. Its
	// ID, user and time of creation cannot change.
	UpdateSession(ctx context.Context, id string, change func(*Session) error) (Session, error)

	// Commit makes a snapshot visible, moves the default and ends the session,
	// all in one transaction. A lost race for the default is not an error. The
	// snapshot's session must exist, or be recorded with it, and be its user's
	// (user_mismatch).
	Commit(ctx context.Context, c Commit) (Moved, error)
	// EndSession ends a session without a snapshot, in one transaction.
	EndSession(ctx context.Context, e End) error

	Snapshot(ctx context.Context, id string) (Snapshot, error)
	// NewestSnapshot returns the session's last committed one; none is
	// no_snapshot, an unknown session is session_not_found.
	NewestSnapshot(ctx context.Context, sessionID string) (Snapshot, error)
	// Snapshots lists newest commit first; next is the cursor for StartAfter,
	// empty at the end.
	Snapshots(ctx context.Context, f SnapshotFilter) (page []Snapshot, next string, err error)
	// UsersWithSnapshots lists the users that have any, by ID.
	UsersWithSnapshots(ctx context.Context) ([]string, error)
	// NeededSnapshots lists which of a user's snapshots RetireSnapshot leaves, with
	// each reason: what the default names, what the sessions that have not ended
	// started from, and the newest of each of those.
	NeededSnapshots(ctx context.Context, userID string) ([]Needed, error)
	// ExpiredSnapshots lists those whose ExpiresAt is past and no default names.
	ExpiredSnapshots(ctx context.Context, now time.Time) ([]Snapshot, error)
	// DeleteSnapshot forgets a snapshot; one that any current default names is
	// snapshot_in_use. lastUse tells that no other record names its archive.
	DeleteSnapshot(ctx context.Context, id string) (lastUse bool, err error)
	// RetireSnapshot is DeleteSnapshot at nobody's request: one that a session
	// needs which has not ended is snapshot_in_use too.
	RetireSnapshot(ctx context.Context, id string) (lastUse bool, err error)

	// ArchiveInUse reports whether any snapshot has the archive.
	ArchiveInUse(ctx context.Context, archiveID string) (bool, error)

	// Default returns the current version; none or removed is default_not_found.
	Default(ctx context.Context, userID string) (Default, error)
	// SetDefault writes a new version. ifVersion nil sets whatever is current;
	// else a mismatch is version_conflict and names the winner; 0 means that
	// there is none. A snapshot of another user is snapshot_not_found. An empty
	// snapshotID removes; nothing to remove is default_not_found.
	SetDefault(ctx context.Context, userID, snapshotID string, ifVersion *int64, at time.Time) (Default, error)
	// Defaults lists the current version of every user that has one, by user.
	Defaults(ctx context.Context) ([]Default, error)
	// LastUsed returns when the last session of a user's ended that started from
	// the snapshot, or made it; the zero time where none has.
	LastUsed(ctx context.Context, userID, snapshotID string) (time.Time, error)
	// DefaultHistory lists versions, newest first; next is the cursor for
	// startAfter, empty at the end.
	DefaultHistory(ctx context.Context, userID string, limit int, startAfter string) (page []PastDefault, next string, err error)

	Extensions
	Runs
	Messages
	Notes
	Deliveries

	// ClaimAnswer records that a request with this key began. fresh is false
	// when it was claimed before; then a is what is known of the first one.
	ClaimAnswer(ctx context.Context, a Answer) (known Answer, fresh bool, err error)
	// FinishAnswer records the first answer's status and body; without an open
	// claim it is not_found. DropAnswer forgets the claim.
	FinishAnswer(ctx context.Context, a Answer) error
	DropAnswer(ctx context.Context, scope, key string) error
	// DropUnfinishedAnswers forgets every claim without an answer. A daemon
	// calls it at start: the requests that made them died with the one before.
	DropUnfinishedAnswers(ctx context.Context) error
	// ExpireAnswers forgets what was claimed before the time.
	ExpireAnswers(ctx context.Context, before time.Time) error

	Health(ctx context.Context) error
	Close() error
}
