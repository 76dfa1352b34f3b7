// Package profiles keeps durable records: users, keys, default environments,
// sessions, and which snapshots are committed.
//
// The domain types stand here, with one interface per domain, such as [SessionStore];
// profiles/sqldb is the SQL adapter. The package knows nothing of Chrome or of where
// archive bytes are: a snapshot is a row with an ID here.
//
// The stores of all domains are parts of one catalogue. Every method of a store is safe
// for concurrent use, and each one that writes is one transaction: it happens whole or
// not at all. What is not found is a fault with the matching code (session_not_found,
// snapshot_not_found, default_not_found, key_not_found, run_not_found). Failures of the
// database itself are store_full, timeout when the context's deadline passed, or
// store_failed; a cancelled context stays recognisable with errors.Is.
//
// Times come back in UTC with at least millisecond precision, empty maps and
// documents come back nil, and a limit that is not positive is none. A cursor
// that the same list never gave is invalid_field; one that was given stays
// valid, whatever is deleted. Callbacks run inside the transaction: they must
// not block or call the catalogue, and their error comes back as it is.
package profiles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// OwnerOf returns the owner of a user: the first 32 hex digits of the SHA-256
// of the user ID. It is what paths and metrics may show.
func OwnerOf(userID string) string {
	sum := sha256.Sum256([]byte(userID))
	return hex.EncodeToString(sum[:16])
}

// Key is an API key. The secret itself is never stored, only its SHA-256.
type Key struct {
	ID        string
	Name      string
	UserID    string   // the user that the key acts for when a call names none
	AllUsers  bool     // it may act for every user
	Rights    []string // what each allows, the session package says
	Hash      [32]byte
	CreatedAt time.Time
}

// User is what outlives a user's environments. The documents are those of package
// session; they are kept byte for byte.
type User struct {
	ID           string
	CreatedAt    time.Time       // zero: there is no record of the user yet
	Settings     json.RawMessage // nil: none
	LoginChecked json.RawMessage // outcome of the last check of the default's login; nil: none
	// Notices are queued with the write that has them, as those of a session of
	// the user's, and never read back.
	Notices   []Notice
	NoticesOf string
}

// Status is a session's status on the wire.
type Status string

// The statuses, in the order in which a session goes through them.
const (
	StatusInitializing Status = "initializing"
	StatusReady        Status = "ready"
	StatusRunning      Status = "running"
	StatusPaused       Status = "paused"
	StatusCompleted    Status = "completed"
	StatusTerminated   Status = "terminated"
	StatusError        Status = "error"
)

// Ended reports whether the status is one that a session ends in.
func (s Status) Ended() bool {
	return s == StatusCompleted || s == StatusTerminated || s == StatusError
}

// Session is the record of a session, running or ended.
type Session struct {
	ID          string
	UserID      string
	KeyID       string
	AgentName   string
	Goal        string
	Engine      string
	Status      Status
	Execution   Execution // "": nothing was said of a task
	Reason      Reason    // why it ended or failed
	CreatedAt   time.Time
	ExpiresAt   time.Time // the lifetime limit
	EndedAt     time.Time // zero while it lives
	Labels      map[string]string
	RequestHash string          // of the create body, for a repeated session_id
	Restored    json.RawMessage // the restore report; nil for a fresh session
	Outcome     json.RawMessage // the answer of the end that was made; nil while it lives
	// RunDir is the name of the folder that its Chrome lives in, so that what a
	// dead daemon left can be told apart. Discard: it is not to be rescued.
	RunDir  string
	Discard bool
	// Sealed is what a rescue needs and the run directory lacks: opaque here, for
	// it is secret. The end of the session removes it.
	Sealed []byte
	// Asked is what the session was made with, sealed and opaque too. It stays: an
	// ended session lives again with it. nil: by an older Stasis, or imported.
	Asked []byte
	// Base is where the session started from: the default's user and version.
	// A default moves only from that version. BaseVersion 0: from none.
	BaseSnapshotID string
	BaseVersion    int64
	WebhookURL     string // told of what becomes of it; "": nobody
	// Notices are queued with the write that has them, and never read back.
	Notices []Notice
}

// Snapshot is the record of a committed snapshot. Package snapshot has its
// bytes; the Location fields there follow from UserID and SessionID here.
type Snapshot struct {
	ID        string
	SessionID string
	UserID    string
	Mode      string // filesystem | memory
	Rescue    bool   // made by the daemon, kept until ExpiresAt, never a default by itself
	Auto      bool   // a checkpoint that the daemon made of a running session
	Label     string
	CreatedAt time.Time
	ExpiresAt time.Time // zero: kept
	ArchiveID string
	SizeBytes int64  // stored bytes of the archive
	Datadir   string // clean | live | crash
	Chrome    string // version that wrote it
	Engine    string
	Report    json.RawMessage // the capture report
	Sequence  int64           // commit order, given by the catalogue
	// Extensions are those whose files it holds: set for a commit, and read with
	// [SnapshotStore.SnapshotExtensions].
	Extensions []PinnedExtension
}

// Default is one version of a user's default environment. A version whose
// SnapshotID is empty says that the default was removed.
type Default struct {
	UserID     string
	Version    int64 // 1, 2, … never reused
	SnapshotID string
	SessionID  string // the session whose save moved it; empty for a PUT
	MovedAt    time.Time
	// Renews is the version that somebody made, of one that was made of it by
	// itself; 0: somebody made it. See [Move.Takes].
	Renews int64
}

// PastDefault is a version of a default in its history.
type PastDefault struct {
	Default
	Available bool // its snapshot is still there
}

// Move asks a commit to move a user's default to the committed snapshot.
type Move struct {
	// From is the version that must be current (0: none ever or removed);
	// ignored when Overwrite is set.
	From      int64
	Overwrite bool
	// Renewal: nobody asked for the move. The version that comes of it renews From,
	// which must be current.
	Renewal bool
	// Fresh: the snapshot is of a session that began with nothing. What came by
	// itself of From, or of one that came of it, does not stand in its way.
	Fresh bool
}

// Takes reports whether the move may take the place of a default. Who saw none
// expects version 0, also when an earlier one was removed. One whose session began
// with an older login does not take the place of what that was renewed to.
func (m Move) Takes(now Default) bool {
	renewed := m.Fresh && now.Renews > 0 && now.Renews <= m.From && m.From < now.Version
	return m.Overwrite || now.Version == m.From || renewed || m.From == 0 && now.SnapshotID == ""
}

// Moved tells what became of a Move.
type Moved struct {
	Moved   bool
	Version int64  // the version that is current afterwards; 0 if there never was one
	Reason  string // why it did not move, naming the winner
}

// Commit is one transaction at the end of a save: the snapshot becomes
// visible, the default moves if asked, and the session ends if End is set. A
// session that goes on while the default moves has the new version as its base.
type Commit struct {
	// Session is recorded in the same transaction where the snapshot comes
	// from elsewhere and no session was there before; nil otherwise.
	Session  *Session
	Snapshot Snapshot
	Move     *Move
	End      *End
	// Notices makes what webhooks are told of the commit, besides what End's does;
	// as [End.Notices].
	Notices func(Session) []Notice
}

// End is how a session ends.
type End struct {
	SessionID string
	Status    Status
	Reason    Reason
	EndedAt   time.Time
	// Outcome makes the answer of the end from what became of the default. It
	// is called inside the transaction and must not block.
	Outcome func(Moved) (json.RawMessage, error)
	// Notices makes what webhooks are told, from the session as it is then. It is
	// called inside the transaction and must not block; nil: nothing.
	Notices func(Session) []Notice
}

// SessionFilter narrows a listing, newest first.
type SessionFilter struct {
	UserID     string // "" for every user
	Status     Status // "" for every status
	Live       bool   // only sessions that have not ended
	Limit      int    // not positive: all
	StartAfter string // exclusive cursor: a session ID of an earlier page
}

// SnapshotFilter narrows a listing, newest commit first.
type SnapshotFilter struct {
	SessionID  string // "" for every session
	UserID     string // "" for every user
	Limit      int    // not positive: all
	StartAfter string // exclusive cursor: a snapshot ID of an earlier page
	Bare       bool   // without their reports
}

// Needed is a reason to leave a snapshot where it is.
type Needed struct {
	SnapshotID string
	By         NeededBy
}

// NeededBy is what needs a snapshot.
type NeededBy string

// What needs snapshots, whatever a policy says.
const (
	NeededByDefault NeededBy = "default"      // the user's default names it
	NeededBySession NeededBy = "live_session" // a session that has not ended started from it, or made it last
)

// Answer is a recorded first answer to a request with an Idempotency-Key.
type Answer struct {
	Scope     string // key ID and route, so that keys do not see each other's
	Key       string
	BodyHash  string
	Status    int // 0 while the first request runs
	Body      []byte
	CreatedAt time.Time
}
