package profiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// AuditOutcome is how an act of the audit log ended.
type AuditOutcome string

// The outcomes.
const (
	AuditOK      AuditOutcome = "ok"
	AuditRefused AuditOutcome = "refused" // the caller's fault: a status below 500
	AuditFailed  AuditOutcome = "failed"
)

// AuditPruned is the act of the entry that is written when old entries are deleted. Its
// object is the number of the last deleted entry, its detail the hash of that entry.
const AuditPruned = "audit_pruned"

// AuditEverybody is the object of an act on data of all users, which has no user.
const AuditEverybody = "all"

// AuditHash is a SHA-256 hash in the audit log. Its text is 64 hex digits.
type AuditHash [sha256.Size]byte

// MarshalText returns the hex digits.
func (h AuditHash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText parses 64 hex digits.
func (h *AuditHash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) {
		return fmt.Errorf("a hash must have %d hex digits", hex.EncodedLen(len(h)))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// String returns the hex digits.
func (h AuditHash) String() string { return hex.EncodeToString(h[:]) }

// AuditEntry is an entry of the audit log: who did what to which object, and how it ended.
// An empty text means that the entry does not have the value. It is the wire format, of
// answers and of lines in files.
type AuditEntry struct {
	Number     int64        `json:"number"` // from 1, without gaps
	At         time.Time    `json:"at"`     // to the millisecond
	By         string       `json:"by"`     // key, first_key, ticket, link, daemon or unknown
	KeyID      string       `json:"key_id"`
	KeyUser    string       `json:"key_user"`    // the user that the key acts for
	Address    string       `json:"address"`     // of the client
	Call       string       `json:"call"`        // an operationId of openapi.yaml, or an act of the daemon
	UserID     string       `json:"user_id"`     // whose data it is
	SessionID  string       `json:"session_id"`  // of the call
	SnapshotID string       `json:"snapshot_id"` // that was made, read or restored
	Object     string       `json:"object"`      // another object, such as a key
	Detail     string       `json:"detail"`
	Outcome    AuditOutcome `json:"outcome"`
	Code       string       `json:"code"`  // of an error
	Count      int64        `json:"count"` // how many acts the entry stands for
	Previous   AuditHash    `json:"previous"`
	Hash       AuditHash    `json:"hash"`
}

// auditFormat begins what is hashed. It changes with the encoding.
const auditFormat = "stasis-audit-1"

// auditTime is the layout of times in what is hashed, which is that of answers too.
const auditTime = "2006-01-02T15:04:05.000Z07:00"

// Sum returns the hash of the entry: SHA-256 of the format's name and all fields but the
// hash, in the order of the type. Each value is the text that it has in JSON, unescaped, as
// a netstring: its length in bytes, a colon, the text, a comma.
func (e AuditEntry) Sum() AuditHash {
	var text []byte
	for _, value := range []string{auditFormat, strconv.FormatInt(e.Number, 10), e.At.UTC().Format(auditTime), e.By, e.KeyID, e.KeyUser, e.Address, e.Call,
		e.UserID, e.SessionID, e.SnapshotID, e.Object, e.Detail, string(e.Outcome), e.Code, strconv.FormatInt(e.Count, 10), e.Previous.String()} {
		text = strconv.AppendInt(text, int64(len(value)), 10)
		text = append(append(append(text, ':'), value...), ',')
	}
	return sha256.Sum256(text)
}

// Follow makes e the next entry after another: it sets its number and hashes.
func (e *AuditEntry) Follow(last AuditEntry) {
	e.Number, e.Previous = last.Number+1, last.Hash
	e.Hash = e.Sum()
}

// AuditFilter selects entries. Empty fields select all.
type AuditFilter struct {
	UserID      string // whose data it is
	KeyID       string
	Call        string
	SessionID   string
	Object      string // a snapshot or another object
	Outcome     AuditOutcome
	Since       time.Time // inclusive
	Until       time.Time // exclusive
	Others      bool      // only acts on data of another user than the key's, or of all users
	StartAfter  int64     // exclusive cursor: a number from an earlier page; 0: none
	OldestFirst bool
	Limit       int
}

// AuditStore keeps the audit log.
type AuditStore interface {
	// AuditHead returns the newest entry; one with number 0 if there is none.
	AuditHead(ctx context.Context) (AuditEntry, error)
	// OldAudit returns the last of the entries that are all older than a time; one with
	// number 0 if there is none.
	OldAudit(ctx context.Context, before time.Time) (AuditEntry, error)
	// AddAudit adds entries and deletes those up to a number; 0 deletes none. Entries that
	// do not continue the log are store_failed. On a node it first chains them to the newest
	// entry of any node, and changes them.
	AddAudit(ctx context.Context, entries []AuditEntry, drop int64) error
	// AuditPage lists entries, newest first. next is the number for StartAfter; 0: the page
	// is the last one. A cursor beyond the log gives no entries.
	AuditPage(ctx context.Context, f AuditFilter) (page []AuditEntry, next int64, err error)
}
