package library

import (
	"slices"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// Retention says which of a user's snapshots stay. A snapshot stays if any rule keeps it;
// newer commits count first, as in restic's forget. It is the stored record and the wire
// format.
type Retention struct {
	KeepLast *int64 `json:"keep_last"` // how many of the newest
	// KeepWithinSeconds keeps snapshots made up to this long before the user's newest. A
	// user who was away for a year therefore still finds that login.
	KeepWithinSeconds *int64 `json:"keep_within_seconds"`
	KeepLabelled      *bool  `json:"keep_labelled"` // those with a label
}

// Keeps reports whether any rule keeps anything.
func (r Retention) Keeps() bool {
	return (r.KeepLast != nil && *r.KeepLast > 0) || (r.KeepWithinSeconds != nil && *r.KeepWithinSeconds > 0) || (r.KeepLabelled != nil && *r.KeepLabelled)
}

// keeps returns the rules that keep a snapshot. n is its index, 0 for the newest, and
// older is how much older than the newest it is.
func (r Retention) keeps(n int64, older time.Duration, row profiles.Snapshot) (why []Reason) {
	if r.KeepLast != nil && n < *r.KeepLast {
		why = append(why, KeptLast)
	}
	if r.KeepWithinSeconds != nil && older <= time.Duration(*r.KeepWithinSeconds)*time.Second {
		why = append(why, KeptWithin)
	}
	if r.KeepLabelled != nil && *r.KeepLabelled && row.Label != "" {
		why = append(why, KeptLabelled)
	}
	return why
}

// Reason is why a snapshot stays.
type Reason string

// The reasons. The first ones apply whatever a policy says.
const (
	KeptDefault  Reason = "default"      // the user's default names it
	KeptSession  Reason = "live_session" // a session that has not ended started from it, or made it last
	KeptParked   Reason = "parked"       // a frozen Chrome is parked with it
	KeptInUse    Reason = "in_use"       // it is being read
	KeptGrace    Reason = "grace"        // it is younger than the grace period
	KeptNewest   Reason = "newest"       // the user's newest: no policy removes all
	KeptRescue   Reason = "rescue"       // it has its own expiry
	KeptNoPolicy Reason = "no_policy"    // neither the user nor the daemon has a policy
	KeptLast     Reason = "keep_last"
	KeptWithin   Reason = "keep_within"
	KeptLabelled Reason = "keep_labelled"
)

// reasons returns why each of a user's snapshots stays. rows are sorted by commit, newest
// first. A snapshot without a reason is removed. A policy neither keeps nor counts rescue
// snapshots. A nil policy is none.
func (p *Pruner) reasons(policy *Retention, rows []profiles.Snapshot, needed []profiles.NeededSnapshot) [][]Reason {
	all := make([][]Reason, len(rows))
	now, n, newest := p.now(), int64(0), time.Time{}
	for i, row := range rows {
		why := p.needs(row, needed, now)
		switch {
		case row.Rescue:
			why = append(why, KeptRescue)
		case policy == nil:
			why = append(why, KeptNoPolicy)
		default:
			if n == 0 {
				why, newest = append(why, KeptNewest), row.CreatedAt
			}
			why = append(why, policy.keeps(n, newest.Sub(row.CreatedAt), row)...)
			n++
		}
		all[i] = why
	}
	return all
}

// needs returns the reasons that apply whatever a policy says.
func (p *Pruner) needs(row profiles.Snapshot, needed []profiles.NeededSnapshot, now time.Time) (why []Reason) {
	for _, by := range []profiles.NeededBy{profiles.NeededByDefault, profiles.NeededBySession} {
		if slices.Contains(needed, profiles.NeededSnapshot{SnapshotID: row.ID, By: by}) {
			why = append(why, Reason(by))
		}
	}
	if p.snapshots.parked.HasParked(row.ID) {
		why = append(why, KeptParked)
	}
	if p.snapshots.Held(row.ID) {
		why = append(why, KeptInUse)
	}
	if now.Sub(row.CreatedAt) < p.grace {
		why = append(why, KeptGrace)
	}
	return why
}
