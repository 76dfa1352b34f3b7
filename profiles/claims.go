package profiles

import (
	"context"
	"time"
)

// ArchiveUse is a snapshot that is being saved and uses an archive or, without a snapshot,
// the removal of an archive.
type ArchiveUse struct {
	ArchiveID, SnapshotID string
	CreatedAt             time.Time
	Lost                  bool // its node has another lease now, or none
}

// ArchiveUseStore decides which node may use or remove an archive in a store that nodes
// share. Only a node may call it.
type ArchiveUseStore interface {
	// ReserveArchive records that a snapshot that is being saved uses an archive, until
	// the snapshot is committed. The commit needs it: it is node_lost under another lease. It returns false if a removal of the archive is on record:
	// its bytes may vanish at any time.
	ReserveArchive(ctx context.Context, archiveID, snapshotID string) (bool, error)
	// ReleaseArchive removes a reservation of a snapshot that will not be committed.
	ReleaseArchive(ctx context.Context, archiveID, snapshotID string) error
	// BeginRemoval records that this node removes an archive, and removes the reservation
	// of a snapshot that no longer needs it ("": none). It returns false if another snapshot
	// has the archive or has reserved it, or if another removal is on record. Reservations of
	// a node without its lease do not count, because that node cannot commit them.
	BeginRemoval(ctx context.Context, archiveID, snapshotID string) (bool, error)
	// EndRemoval records that the archive was removed, or that nothing was sent to the
	// store. A removal whose effect is unknown stays on record.
	EndRemoval(ctx context.Context, archiveID string) error
	// ArchiveUses lists the reservations that are lost, and all removals, which were
	// recorded before a time.
	ArchiveUses(ctx context.Context, before time.Time) ([]ArchiveUse, error)
}

// SourceDefault is the source type of a create that named a user's default.
const SourceDefault = "user_default"

// SessionClaim is a session that is being created or lives on a node, and the environment
// that it started from.
type SessionClaim struct {
	SessionID, NodeID, KeyID string
	UserID                   string // of the environment; "": none yet
	SourceType, SourceID     string // what its create named
	SnapshotID               string // of the source
}

// CheckClaim is a login check that is under way on a node.
type CheckClaim struct {
	UserID, NodeID string
	Scheduled      bool
	SnapshotID     string // that is checked
	Wanted         bool   // a create on another node waits for it
}

// QuotaUse is how many sessions of a user and of a key there are on all nodes: all of them,
// and those that may be saved.
type QuotaUse struct{ UserSessions, UserSaving, KeySessions, KeySaving int64 }

// QuotaCount says whose quotas a session counts for. OfUser and OfKey say whether the number of
// other sessions of the user, or of the key, must be counted: if there is no quota, that would
// only take time, and make creates conflict.
type QuotaCount struct {
	UserID, KeyID string
	Saves         bool // it may be saved
	OfUser, OfKey bool
}

// ClaimStore keeps what the sessions and login checks of all nodes hold. A claim of a node
// without its lease does not count. Only a node may call it.
type ClaimStore interface {
	// ClaimSession claims an ID for a session of this node until ReleaseSession, or until a
	// commit ends the session. If another node has the ID, it returns that claim.
	ClaimSession(ctx context.Context, sessionID, keyID string) (*SessionClaim, error)
	// EnterEnvironment records what a claimed session starts from. If a session on another
	// node holds the same environment, it returns that instead, unless company is true. A
	// scheduled check on another node is always returned, and learns that it is wanted.
	EnterEnvironment(ctx context.Context, own SessionClaim, snapshotSession string, company bool) (*SessionClaim, *CheckClaim, error)
	// CountSession records whose quotas a claimed session counts for, if admit allows it.
	// admit gets the numbers without this session; those that need not be counted are 0.
	CountSession(ctx context.Context, sessionID string, c QuotaCount, admit func(QuotaUse) error) error
	// ReleaseSession removes a claim of this node.
	ReleaseSession(ctx context.Context, sessionID string) error
	// SessionClaim returns the claim of a session, or nil.
	SessionClaim(ctx context.Context, sessionID string) (*SessionClaim, error)
	// EnterCheck claims a user's login check for this node. It returns false if another
	// check of the user is under way or, for a scheduled one, if a session holds the
	// environment.
	EnterCheck(ctx context.Context, c CheckClaim) (bool, error)
	// LeaveCheck removes a check of this node.
	LeaveCheck(ctx context.Context, userID string) error
	// CheckClaim returns the check of a user that is under way, or nil.
	CheckClaim(ctx context.Context, userID string) (*CheckClaim, error)
	// HoldSnapshot prevents that another node removes a snapshot, until ReleaseSnapshot.
	// purpose names the use ("restored").
	// holdID is new. A missing snapshot is snapshot_not_found.
	HoldSnapshot(ctx context.Context, holdID, snapshotID, purpose string) error
	ReleaseSnapshot(ctx context.Context, holdID string) error
	// RemoveVoid removes what counts no more: claims, checks, holds and waiting creates of nodes
	// without the lease under which they were made, and tickets that have expired before a time.
	RemoveVoid(ctx context.Context, before time.Time) error
}

// TicketStore keeps one-use tickets where every node finds them.
type TicketStore interface {
	// AddTicket records a ticket of a key by its hash. If the key has most unexpired
	// tickets already, it returns false.
	AddTicket(ctx context.Context, hash [32]byte, keyID string, expires, now time.Time, most int) (bool, error)
	// SpendTicket removes a ticket and returns its key; "" if it is unknown or expired.
	SpendTicket(ctx context.Context, hash [32]byte, now time.Time) (keyID string, err error)
}
