// Package profiles keeps durable records: users, keys, default environments,
// sessions, and which snapshots are committed.
//
// This package has the domain types and one interface per domain, such as [SessionStore];
// profiles/sqldb is the SQL adapter. The package knows nothing of Chrome or of where
// archive bytes are stored: here a snapshot is a row with an ID.
//
// The stores of all domains form one catalogue. Every method of a store is safe for
// concurrent use, and each method that writes is one atomic transaction. A missing record
// is a fault with the matching code (session_not_found, snapshot_not_found,
// default_not_found, key_not_found, run_not_found). Failures of the database are
// store_full, timeout if the context's deadline passed, or store_failed. A cancelled
// context is recognisable with errors.Is.
//
// Times are returned in UTC with at least millisecond precision. Empty maps and documents
// are returned as nil. A limit that is not positive means no limit. A cursor that the
// same list never returned is invalid_field; a returned cursor stays valid, whatever is
// deleted. Callbacks run inside the transaction: they must not block or call the
// catalogue, and their error is returned unchanged.
package profiles

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// OwnerOf returns the owner of a user: the first 32 hex digits of the SHA-256 of the user
// ID. Paths and metrics show the owner, not the user ID.
func OwnerOf(userID string) string {
	sum := sha256.Sum256([]byte(userID))
	return hex.EncodeToString(sum[:16])
}

// Key is an API key. The secret itself is never stored, only its SHA-256.
type Key struct {
	ID        string
	Name      string
	UserID    string   // the user of calls that name no user
	AllUsers  bool     // the key may act for every user
	Rights    []string // package session defines what each allows
	Hash      [32]byte
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	Networks  []string  // those that it may be used from, in CIDR notation; nil: all
	UsedAt    time.Time // zero: never
	// Quotas is a document of package session, stored byte for byte; nil: none.
	Quotas json.RawMessage
	// Former is the hash of the key's former secret, which is valid until FormerUntil. Both
	// are zero if there is none.
	Former      [32]byte
	FormerUntil time.Time
}

// User holds the data of a user that outlives environments. Package session defines the
// documents; they are stored byte for byte.
type User struct {
	ID           string
	CreatedAt    time.Time       // zero if the user has no record yet
	Settings     json.RawMessage // nil: none
	LoginChecked json.RawMessage // result of the last login check of the default; nil: none
	// Notices are queued in the same write, like those of one of the user's sessions. They
	// are never read back.
	Notices   []Notice
	NoticesOf string
}

// Status is a session's status in the API.
type Status string

// The statuses, in the order in which a session passes through them.
const (
	StatusInitializing Status = "initializing"
	StatusReady        Status = "ready"
	StatusRunning      Status = "running"
	StatusPaused       Status = "paused"
	StatusCompleted    Status = "completed"
	StatusTerminated   Status = "terminated"
	StatusError        Status = "error"
)

// Ended reports whether the status is final.
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
	NodeID      string // the node on which it lives, or has lived last; "": the daemon was none
	Status      Status
	Execution   Execution // "" if no execution status was set
	Reason      Reason    // why it ended or failed
	CreatedAt   time.Time
	ExpiresAt   time.Time // the lifetime limit
	EndedAt     time.Time // zero while the session is live
	Labels      map[string]string
	RequestHash string          // of the create body, to recognise a repeated session_id
	Restored    json.RawMessage // the restore report; nil for a fresh session
	Outcome     json.RawMessage // the recorded response to the end; nil while the session is live
	// RunDir is the name of the folder of its Chrome, by which the daemon finds what a dead
	// daemon left. Discard means that this is not to be rescued.
	RunDir  string
	Discard bool
	// Sealed is what a rescue needs and the run directory lacks. It is secret, and
	// therefore opaque here. The end of the session removes it.
	Sealed []byte
	// SealedRequest is the create request, also sealed and opaque. It stays, because an
	// ended session is resumed with it. It is nil if an older Stasis wrote the record or
	// the session was imported.
	SealedRequest []byte
	// Base is where the session started from: the default's user and version. A save moves
	// the default only from that version. BaseVersion 0 means no default.
	BaseSnapshotID string
	BaseVersion    int64
	FromDefault    bool   // it started from its user's default, or continues a session that did
	WebhookURL     string // receives the session's events; "" means none
	TicketSalt     string // the session's tickets are derived from it; "": they end with the daemon
	// Notices are queued in the same write, and never read back.
	Notices []Notice
	// Continues is the snapshot that a resumed session starts from; "": none. The same write
	// takes the session's conversation and task back to those of the snapshot if GoesBack is
	// set, or if the conversation no longer has all messages of the snapshot. Both are never
	// read back.
	Continues string
	GoesBack  bool
	// Counts says whose quotas the claim of a new session counts for from this write on; nil:
	// that is recorded already, or the daemon is not a node. It is never read back.
	Counts *QuotaCount
}

// Snapshot is the record of a committed snapshot. Package snapshot stores its bytes; the
// Location fields there follow from UserID and SessionID here.
type Snapshot struct {
	ID        string
	SessionID string
	UserID    string
	Mode      string // filesystem | memory
	Rescue    bool   // made by the daemon, kept until ExpiresAt, never made the default automatically
	Auto      bool   // an automatic checkpoint of a running session
	Label     string
	CreatedAt time.Time
	ExpiresAt time.Time // zero means no expiry
	ArchiveID string
	SizeBytes int64  // stored bytes of the archive
	Datadir   string // clean | live | crash
	Chrome    string // version that wrote it
	Engine    string
	Report    json.RawMessage // the capture report
	Sequence  int64           // order of commits; set by the catalogue
	// Extensions lists those whose files the snapshot holds. It is set for a commit, and
	// read with [SnapshotStore.SnapshotExtensions].
	Extensions []PinnedExtension
}

// Default is one version of a user's default environment. An empty SnapshotID means that
// the default was removed.
type Default struct {
	UserID     string
	Version    int64 // 1, 2, … never reused
	SnapshotID string
	SessionID  string // the session whose save moved the default; "" for a PUT
	MovedAt    time.Time
	// Renews is set in automatic renewals: it is the version, made on request, that was
	// renewed. 0 means that this version was made on request. See [Move.MayReplace].
	Renews int64
}

// PastDefault is a version in the history of a default.
type PastDefault struct {
	Default
	Available bool // its snapshot still exists
}

// Move asks a commit to move a user's default to the committed snapshot.
type Move struct {
	// From is the version that must be current; 0 means that there never was one or that it
	// was removed. It is ignored if Overwrite is set.
	From      int64
	Overwrite bool
	// Renewal means that the move is automatic. The new version renews From, which must be
	// current.
	Renewal bool
	// Fresh means that the snapshot's session started without an environment. Automatic
	// renewals of From do not conflict with such a move.
	Fresh bool
}

// MayReplace reports whether the move may replace the default now. A session that saw no
// default expects version 0, even if an earlier one was removed. A session that started
// with an older login does not replace the renewal of that login.
func (m Move) MayReplace(now Default) bool {
	renewed := m.Fresh && now.Renews > 0 && now.Renews <= m.From && m.From < now.Version
	return m.Overwrite || now.Version == m.From || renewed || m.From == 0 && now.SnapshotID == ""
}

// MoveResult is the result of a Move.
type MoveResult struct {
	Moved   bool
	Version int64  // the current version afterwards; 0 if there never was one
	Reason  string // why the default did not move; names the version that won
}

// Commit is one transaction at the end of a save. The snapshot becomes visible, the
// default moves if Move is set, and the session ends if End is set. If the session
// continues and the default moves, the new version becomes its base.
type Commit struct {
	// Session is recorded in the same transaction if the snapshot was imported and its
	// session has no record yet; otherwise nil.
	Session  *Session
	Snapshot Snapshot
	Move     *Move
	End      *End
	// Notices returns the notices of the commit, in addition to those of End. See
	// [End.Notices].
	Notices func(Session) []Notice
	// Check refuses the commit with its error. It gets the session as it is recorded. It is
	// called inside the transaction and must not block. nil accepts it.
	Check func(Session) error
	// Admit refuses the commit with its error. It gets what the user and the key of the
	// session have stored, with the snapshot. It is called inside the transaction and must
	// not block. nil admits it.
	Admit func(user, key Stored) error
}

// Stored is what a user or a key has stored. An archive that several snapshots share counts
// for each of them.
type Stored struct {
	Snapshots int64
	Bytes     int64
}

// End describes how a session ends.
type End struct {
	SessionID string
	Status    Status
	Reason    Reason
	EndedAt   time.Time
	// Check refuses the end with its error; see [Commit.Check]. It is not called if the end is
	// part of a commit.
	Check func(Session) error
	// Outcome returns the response to the end, given the result of the move. It is called
	// inside the transaction and must not block.
	Outcome func(MoveResult) (json.RawMessage, error)
	// Notices returns the notices of the end, from the ended session. It is called inside
	// the transaction and must not block. nil means no notices.
	Notices func(Session) []Notice
}

// SessionFilter selects sessions for a list, newest first.
type SessionFilter struct {
	UserID     string // "" for every user
	Status     Status // "" for every status
	Live       bool   // only sessions that have not ended
	Limit      int    // not positive: all
	StartAfter string // exclusive cursor: a session ID from an earlier page
}

// SnapshotFilter selects snapshots for a list, newest commit first.
type SnapshotFilter struct {
	SessionID   string // "" for every session
	UserID      string // "" for every user
	Limit       int    // not positive: all
	StartAfter  string // exclusive cursor: a snapshot ID from an earlier page
	OmitReports bool   // without their reports
}

// NeededSnapshot is a reason to keep a snapshot.
type NeededSnapshot struct {
	SnapshotID string
	By         NeededBy
}

// NeededBy names what needs a snapshot.
type NeededBy string

// The values of NeededBy. Retention policies do not apply to needed snapshots.
const (
	NeededByDefault NeededBy = "default"      // the user's default names it
	NeededBySession NeededBy = "live_session" // a session that has not ended started from it, or it is that session's newest
)

// Answer is the recorded first response to a request with an Idempotency-Key.
type Answer struct {
	Scope     string // key ID and route, so that API keys do not see each other's
	Key       string
	BodyHash  string
	Status    int    // 0 while the first request runs
	Body      []byte // with Status 0: what the first request has chosen for what it makes, or nil
	CreatedAt time.Time
	// Elsewhere says with Status 0 that another node, which has its lease, has made the claim.
	Elsewhere bool
}
