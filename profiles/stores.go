package profiles

import (
	"context"
	"time"
)

// KeyStore keeps the records of API keys.
type KeyStore interface {
	// CreateKey records a key. Keys lists them, oldest first.
	CreateKey(ctx context.Context, k Key) error
	Keys(ctx context.Context) ([]Key, error)
	KeyByHash(ctx context.Context, hash [32]byte) (Key, error)
	// Key is the key of an ID; key_not_found where there is none.
	Key(ctx context.Context, id string) (Key, error)
	DeleteKey(ctx context.Context, id string) error
}

// UserStore keeps the records of users.
type UserStore interface {
	// User returns what is kept of a user; one that has no record yet comes
	// back with nothing but its ID. UpdateUser reads, changes and writes it in a
	// transaction, and makes the record, as of at, where there is none; its ID
	// and time of creation cannot change.
	User(ctx context.Context, id string) (User, error)
	UpdateUser(ctx context.Context, id string, at time.Time, change func(*User) error) (User, error)
	// UsersWithSettings lists the users that have settings, by ID.
	UsersWithSettings(ctx context.Context) ([]User, error)
}

// SessionStore keeps the records of sessions.
type SessionStore interface {
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
	// EndSession ends a session without a snapshot, in one transaction.
	EndSession(ctx context.Context, e End) error
}

// SnapshotStore keeps the records of snapshots.
type SnapshotStore interface {
	// Commit makes a snapshot visible, moves the default and ends the session,
	// all in one transaction. A lost race for the default is not an error. The
	// snapshot's session must exist, or be recorded with it, and be its user's
	// (user_mismatch).
	Commit(ctx context.Context, c Commit) (Moved, error)

	Snapshot(ctx context.Context, id string) (Snapshot, error)
	// NewestSnapshot returns the session's last committed one; none is
	// no_snapshot, an unknown session is session_not_found.
	NewestSnapshot(ctx context.Context, sessionID string) (Snapshot, error)
	// Snapshots lists newest commit first; next is the cursor for StartAfter,
	// empty at the end.
	Snapshots(ctx context.Context, f SnapshotFilter) (page []Snapshot, next string, err error)
	// DeleteSnapshot forgets a snapshot; one that any current default names is
	// snapshot_in_use. lastUse tells that no other record names its archive.
	DeleteSnapshot(ctx context.Context, id string) (lastUse bool, err error)
	// ArchiveInUse reports whether any snapshot has the archive.
	ArchiveInUse(ctx context.Context, archiveID string) (bool, error)
	// SnapshotExtensions lists the extensions whose files a snapshot holds, by ID.
	SnapshotExtensions(ctx context.Context, snapshotID string) ([]PinnedExtension, error)
}

// RetentionStore looks up which snapshots are still needed, and removes the records
// of those that are not.
type RetentionStore interface {
	// UsersWithSnapshots lists the users that have any, by ID.
	UsersWithSnapshots(ctx context.Context) ([]string, error)
	// NeededSnapshots lists which of a user's snapshots RetireSnapshot leaves, with
	// each reason: what the default names, what the sessions that have not ended
	// started from, and the newest of each of those.
	NeededSnapshots(ctx context.Context, userID string) ([]Needed, error)
	// ExpiredSnapshots lists those whose ExpiresAt is past and no default names.
	ExpiredSnapshots(ctx context.Context, now time.Time) ([]Snapshot, error)
	// RetireSnapshot is [SnapshotStore.DeleteSnapshot] at nobody's request: one that a session
	// needs which has not ended is snapshot_in_use too.
	RetireSnapshot(ctx context.Context, id string) (lastUse bool, err error)
}

// DefaultStore keeps the versions of users' default environments.
type DefaultStore interface {
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
}

// AnswerStore keeps the first answers to requests that may be repeated.
type AnswerStore interface {
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
}
