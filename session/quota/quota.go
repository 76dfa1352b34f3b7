// Package quota has the quotas of users and keys: how much each may have at once, or do in a
// second. It compares, counts and limits rates. What is counted, and where, its callers
// decide.
package quota

import (
	"fmt"

	"github.com/stasisd/stasis/fault"
)

// Name is the name of a quota, in the API and in flags.
type Name string

// The quotas.
const (
	Sessions  Name = "sessions"            // live sessions
	Parked    Name = "parked"              // parked Chromes
	Standbys  Name = "standbys"            // Chromes kept ready with the user's default
	Snapshots Name = "snapshots"           // stored snapshots
	Bytes     Name = "bytes"               // stored bytes of snapshots
	Imports   Name = "imports"             // imports at once
	Sockets   Name = "sockets"             // CDP clients, viewers and event streams at once
	Requests  Name = "requests_per_second" // requests in a second
)

// Quotas bound what a user or a key has. nil means that there is no such quota, or for a
// user that the daemon's applies. It is the stored record and the wire format.
type Quotas struct {
	Sessions  *int64 `json:"sessions"`
	Parked    *int64 `json:"parked"`
	Standbys  *int64 `json:"standbys"`
	Snapshots *int64 `json:"snapshots"`
	Bytes     *int64 `json:"bytes"`
	Imports   *int64 `json:"imports"`
	Sockets   *int64 `json:"sockets"`
	Requests  *int64 `json:"requests_per_second"`
}

// Names returns the names of all quotas, in their order.
func Names() []Name {
	return []Name{Sessions, Parked, Standbys, Snapshots, Bytes, Imports, Sockets, Requests}
}

// field returns where q keeps a quota; nil for an unknown name.
func (q *Quotas) field(name Name) **int64 {
	switch name {
	case Sessions:
		return &q.Sessions
	case Parked:
		return &q.Parked
	case Standbys:
		return &q.Standbys
	case Snapshots:
		return &q.Snapshots
	case Bytes:
		return &q.Bytes
	case Imports:
		return &q.Imports
	case Sockets:
		return &q.Sockets
	case Requests:
		return &q.Requests
	}
	return nil
}

// Of returns a quota; nil if there is none.
func (q Quotas) Of(name Name) *int64 {
	if at := q.field(name); at != nil {
		return *at
	}
	return nil
}

// Set sets a quota. It reports whether the name is known and the value allowed.
func (q *Quotas) Set(name Name, n int64) bool {
	at := q.field(name)
	if at == nil || n < Least(name) || n > Largest(name) {
		return false
	}
	*at = &n
	return true
}

// Or returns the quotas with those of fallback where q has none.
func (q Quotas) Or(fallback Quotas) Quotas {
	for _, name := range Names() {
		if at := q.field(name); *at == nil {
			*at = fallback.Of(name)
		}
	}
	return q
}

// Least returns the smallest value of a quota. It is 0 for Chromes that the daemon keeps by
// itself, which a user can do without.
func Least(name Name) int64 {
	if name == Parked || name == Standbys {
		return 0
	}
	return 1
}

// Largest returns the largest value of a quota.
func Largest(name Name) int64 {
	if name == Bytes {
		return 1 << 50
	}
	return 1_000_000
}

// Kind says whether a quota is a user's or a key's.
type Kind string

// The kinds of holders.
const (
	User Kind = "user"
	Key  Kind = "key"
	// Link is a shared link. Its limit comes from the quotas of others; see [OfLink].
	Link Kind = "link"
)

// Holder is a user, a key or a shared link.
type Holder struct {
	Kind Kind
	ID   string
}

// Share is what one holder has of one thing.
type Share struct {
	Holder
	Name Name
}

// Limit is a share and how large it may be.
type Limit struct {
	Share
	Most  *int64 // nil: it is only counted
	Other int64  // what the holder has that the count does not include

	OfSave bool // it limits a checkpoint or an import, and not a create
}

// Limits returns the limits of a user and of a key for one thing. Without a key ID there is
// only that of the user.
func Limits(name Name, userID string, user Quotas, keyID string, key Quotas) []Limit {
	limits := []Limit{{Share: Share{Holder{User, userID}, name}, Most: user.Of(name)}}
	if keyID != "" {
		limits = append(limits, Limit{Share: Share{Holder{Key, keyID}, name}, Most: key.Of(name)})
	}
	return limits
}

// OfLink returns the limit of a shared link: the smallest of others, which are of one thing.
func OfLink(linkID string, others []Limit) Limit {
	smallest := others[0]
	for _, l := range others[1:] {
		if smallest.Most == nil || l.Most != nil && *l.Most < *smallest.Most {
			smallest = l
		}
	}
	smallest.Holder = Holder{Link, linkID}
	return smallest
}

// Reached reports whether a holder that has n cannot have one more.
func (l Limit) Reached(n int64) bool { return l.Most != nil && n+l.Other >= *l.Most }

// Exceeded is the cause of a quota_exceeded: which quota, and whose. It is also its wire
// format.
type Exceeded struct {
	Name  Name   `json:"name"`
	Limit int64  `json:"limit"`
	Of    Kind   `json:"of"`
	ID    string `json:"id"`
}

// Error describes the quota.
func (e Exceeded) Error() string {
	return fmt.Sprintf("the quota %s of a %s is %d", e.Name, e.Of, e.Limit)
}

// descriptions are what the quotas count, and what a caller can do when they are used up. A create
// has one more way out, which a save has not.
var descriptions = map[Name]struct{ one, more, advice, create string }{
	Sessions:  {"live session", "live sessions", "end one, or wait with wait_seconds", ""},
	Snapshots: {"snapshot or live session that may be saved", "snapshots and live sessions that may be saved", "delete snapshots or end sessions", readOnly},
	Bytes:     {"stored byte", "stored bytes", "delete snapshots", readOnly},
	Imports:   {"running import", "running imports", "try again when one has ended", ""},
	Sockets:   {"open socket or event stream", "open sockets and event streams", "close one", ""},
	Requests:  {"request in this second", "requests in this second", "wait as long as Retry-After says", ""},
}

const readOnly = ", or create the session with read_only"

// Error returns quota_exceeded for a limit of which the holder has n, with [Exceeded] as
// its cause. The limit has a value.
func (l Limit) Error(op string, n int64) error {
	description, has := descriptions[l.Name], n+l.Other
	counted, advice := description.more, description.advice+description.create
	if has == 1 {
		counted = description.one
	}
	if l.OfSave {
		advice = description.advice
	}
	return fault.Wrap(Exceeded{l.Name, *l.Most, l.Kind, l.ID}, fault.QuotaExceeded, op,
		fmt.Sprintf("quotas.%s: the %s has %d %s, and its limit is %d; %s", l.Name, l.Kind, has, counted, *l.Most, advice))
}
