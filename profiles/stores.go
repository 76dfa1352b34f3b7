package profiles

import (
	"context"
	"encoding/json"
	"time"
)

// KeyStore keeps the records of API keys.
type KeyStore interface {
	// CreateKey records a key. Keys lists them, oldest first.
	CreateKey(ctx context.Context, k Key) error
	Keys(ctx context.Context) ([]Key, error)
	// KeyByHash returns the key whose secret, or whose former secret, has the hash.
	KeyByHash(ctx context.Context, hash [32]byte) (Key, error)
	// RotateKey gives a key a new hash. Its present one is the former one until a time.
	RotateKey(ctx context.Context, id string, hash [32]byte, until time.Time) (Key, error)
	// UseKey records when a key was used. An unknown key is ignored.
	UseKey(ctx context.Context, id string, at time.Time) error
	// Key returns the key with an ID, or key_not_found.
	Key(ctx context.Context, id string) (Key, error)
	DeleteKey(ctx context.Context, id string) error
	// SetKeyQuotas changes the quotas of a key in a transaction and returns the key, or
	// key_not_found. An error of change changes nothing.
	SetKeyQuotas(ctx context.Context, id string, change func(was json.RawMessage) (json.RawMessage, error)) (Key, error)
}

// UserStore keeps the records of users.
type UserStore interface {
	// User returns the record of a user. If there is none, only the ID is set. UpdateUser
	// reads, changes and writes the record in a transaction. If there is none, it creates
	// one with the time at. The ID and time of creation cannot change.
	User(ctx context.Context, id string) (User, error)
	UpdateUser(ctx context.Context, id string, at time.Time, change func(*User) error) (User, error)
	// UsersWithSettings lists the users that have settings, by ID.
	UsersWithSettings(ctx context.Context) ([]User, error)
}

// SessionStore keeps the records of sessions.
type SessionStore interface {
	// CreateSession records a new session and its user; a taken ID is session_exists.
	CreateSession(ctx context.Context, s Session) error
	Session(ctx context.Context, id string) (Session, error)
	// Sessions lists newest first (CreatedAt, then ID). next is the cursor for StartAfter,
	// empty at the end.
	Sessions(ctx context.Context, f SessionFilter) (page []Session, next string, err error)
	// UpdateSession reads, changes and writes one session in a transaction. Its ID, user
	// and time of creation cannot change.
	UpdateSession(ctx context.Context, id string, change func(*Session) error) (Session, error)
	// EndSession ends a session without a snapshot, in one transaction.
	EndSession(ctx context.Context, e End) error
}

// SnapshotStore keeps the records of snapshots.
type SnapshotStore interface {
	// Commit makes a snapshot visible, moves the default and ends the session, all in one
	// transaction. It is not an error if another session has moved the default first. The
	// snapshot's session must exist, or be recorded with it, and have the same user
	// (user_mismatch).
	Commit(ctx context.Context, c Commit) (MoveResult, error)

	Snapshot(ctx context.Context, id string) (Snapshot, error)
	// NewestSnapshot returns the session's last committed snapshot. If there is none, the
	// error is no_snapshot; an unknown session is session_not_found.
	NewestSnapshot(ctx context.Context, sessionID string) (Snapshot, error)
	// Snapshots lists newest commit first. next is the cursor for StartAfter, empty at the
	// end.
	Snapshots(ctx context.Context, f SnapshotFilter) (page []Snapshot, next string, err error)
	// DeleteSnapshot removes a snapshot's record. If a current default names the snapshot,
	// the error is snapshot_in_use. lastUse reports that no other record names its archive.
	DeleteSnapshot(ctx context.Context, id string) (lastUse bool, err error)
	// ArchiveInUse reports whether any snapshot has the archive.
	ArchiveInUse(ctx context.Context, archiveID string) (bool, error)
	// SnapshotExtensions lists the extensions whose files a snapshot holds, by ID.
	SnapshotExtensions(ctx context.Context, snapshotID string) ([]PinnedExtension, error)
	// StoredByUser and StoredByKey return what a user has stored, and what the sessions of a
	// key have.
	StoredByUser(ctx context.Context, userID string) (Stored, error)
	StoredByKey(ctx context.Context, keyID string) (Stored, error)
}

// RetentionStore finds which snapshots are still needed, and removes the records of
// others.
type RetentionStore interface {
	// UsersWithSnapshots lists the users that have snapshots, by ID.
	UsersWithSnapshots(ctx context.Context) ([]string, error)
	// NeededSnapshots lists the snapshots of a user that RetireSnapshot keeps, with each
	// reason. These are the default's snapshot and, for each session that has not ended,
	// the one it started from and its newest.
	NeededSnapshots(ctx context.Context, userID string) ([]NeededSnapshot, error)
	// ExpiredSnapshots lists those whose ExpiresAt has passed and that no default names.
	ExpiredSnapshots(ctx context.Context, now time.Time) ([]Snapshot, error)
	// RetireSnapshot is [SnapshotStore.DeleteSnapshot] by a policy, not by a request. It
	// also returns snapshot_in_use if a session that has not ended needs the snapshot.
	RetireSnapshot(ctx context.Context, id string) (lastUse bool, err error)
}

// DefaultStore keeps the versions of users' default environments.
type DefaultStore interface {
	// Default returns the current version. If there is none or it was removed, the error is
	// default_not_found.
	Default(ctx context.Context, userID string) (Default, error)
	// SetDefault writes a new version. If ifVersion is nil, it replaces any version.
	// Otherwise that version must be current (0 means none), or the error is
	// version_conflict and names the current one. A snapshot of another user is
	// snapshot_not_found. An empty snapshotID removes the default; if there is none, the
	// error is default_not_found.
	SetDefault(ctx context.Context, userID, snapshotID string, ifVersion *int64, at time.Time) (Default, error)
	// Defaults lists the current version of every user that has one, by user.
	Defaults(ctx context.Context) ([]Default, error)
	// LastUsed returns the end of the user's last session that started from the snapshot or
	// made it. It is the zero time if there is none.
	LastUsed(ctx context.Context, userID, snapshotID string) (time.Time, error)
	// DefaultHistory lists versions, newest first. next is the cursor for startAfter, empty
	// at the end.
	DefaultHistory(ctx context.Context, userID string, limit int, startAfter string) (page []PastDefault, next string, err error)
}

// AnswerStore keeps the first responses to requests that may be repeated.
type AnswerStore interface {
	// ClaimAnswer records that a request with this key began. If the key was claimed
	// before, fresh is false and known is the recorded answer. A claim keeps its Body.
	ClaimAnswer(ctx context.Context, a Answer) (known Answer, fresh bool, err error)
	// FinishAnswer records the first response's status and body; without an open claim the
	// error is not_found. DropAnswer removes the claim. On a node, both leave a claim alone that
	// another node has made since: the node had lost its lease, and with it the claim.
	FinishAnswer(ctx context.Context, a Answer) error
	DropAnswer(ctx context.Context, scope, key string) error
	// DropUnfinishedAnswers removes every claim without an answer and without a Body. A daemon
	// calls it at start, because the requests of those claims ended with the previous daemon. A
	// node removes its own and those of nodes that have lost their leases.
	DropUnfinishedAnswers(ctx context.Context) error
	// ExpireAnswers removes what was claimed before the time.
	ExpireAnswers(ctx context.Context, before time.Time) error
}
