package capacity

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// StandbySettings are a user's settings of standbys.
type StandbySettings struct {
	// Set reports whether the user has such settings. If not, a default that is restored
	// often gets one standby.
	Set   bool
	Count int
	// Engine is the engine of creates that restore the default. It is "" if that engine is
	// not installed; then no standby is kept.
	Engine string
	Most   *int64 // the user's quota of standbys; nil: none
}

// want is how many standbys of a snapshot there should be.
type want struct {
	key       pool.Key
	snapshot  profiles.Snapshot
	n         int
	requested bool // by settings
}

// plan returns which standbys there should be, within the budget. Standbys that settings
// request come first. Then come users who hold standbys and use them, then the users with
// the latest restores.
func (k *standbys[S, B]) plan() ([]want, error) {
	now := k.now()
	known := k.demand.current(now)
	users := slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		x, y := known[a], known[b]
		return cmp.Or(first(x.requested, y.requested), first(k.uses(a, x, now), k.uses(b, y, now)), y.last().Compare(x.last()), cmp.Compare(a, b))
	})
	var plan []want
	holders := map[string]bool{}
	left := min(k.cfg.Standby.Size, k.budget.standbyLimit())
	for _, userID := range users {
		if left <= 0 {
			break
		}
		w, err := k.wants(k.ctx, userID, known[userID])
		if err != nil {
			return nil, err
		}
		if w.n = min(w.n, left); w.n > 0 {
			plan, left, holders[userID] = append(plan, w), left-w.n, true
		}
	}
	k.holders = holders
	return plan, nil
}

// first compares two bools and orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// uses reports whether a user holds standbys and has used them lately.
func (k *standbys[S, B]) uses(userID string, d userDemand, now time.Time) bool {
	return k.holders[userID] && now.Sub(d.last()) <= inUseFor
}

// wants returns a user's default and how many standbys of it there should be.
func (k *standbys[S, B]) wants(ctx context.Context, userID string, d userDemand) (w want, err error) {
	current, err := k.catalogue.Default(ctx, userID)
	if fault.Is(err, fault.DefaultNotFound) {
		return w, nil
	}
	if err == nil {
		w.snapshot, err = k.catalogue.Snapshot(ctx, current.SnapshotID)
	}
	if fault.Is(err, fault.SnapshotNotFound) {
		return w, nil // the default moved between the two lookups; that move wakes run again
	}
	if err != nil {
		return w, err
	}
	set, err := k.sessions.StandbySettings(ctx, userID, w.snapshot)
	if err != nil {
		return w, err
	}
	n, engine := 1, d.engine // the default of a user without settings, because it is restored often
	if set.Set {
		n, engine = set.Count, set.Engine
	}
	if set.Most != nil {
		n = min(n, int(*set.Most))
	}
	if n == 0 || engine == "" {
		return w, nil
	}
	if engine == browser.EngineChrome {
		// Chrome would run the extensions' workers when it opens the profile, before any
		// tab opens.
		if has, err := k.catalogue.SnapshotExtensions(ctx, w.snapshot.ID); err != nil || len(has) > 0 {
			return w, err
		}
	}
	w.key, w.n, w.requested = pool.Key{Snapshot: w.snapshot.ID, Engine: engine}, n, set.Set
	return w, nil
}
