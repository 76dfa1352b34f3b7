package session

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/fault"
)

// A default is restored often when it was restored so many times within so long.
// Its user's standby does not give way to another's while it is in use, which is
// so long after a restore.
const (
	oftenTimes  = 3
	oftenWithin = time.Hour
	inUseFor    = 10 * time.Minute
)

// demand is what is known of a user's restores.
type demand struct {
	asked  bool        // the settings ask for standbys
	times  []time.Time // of the last restores in one engine, the latest last; at most oftenTimes
	engine string      // which that is
}

func (d *demand) often(now time.Time) bool {
	return len(d.times) == oftenTimes && now.Sub(d.times[0]) <= oftenWithin
}

func (d *demand) last() (last time.Time) {
	if n := len(d.times); n > 0 {
		last = d.times[n-1]
	}
	return last
}

// note counts a restore of a default that a standby could serve, or could have.
func (k *standbys) note(r Create, o origin, report *RestoreReport, now time.Time) {
	plain := r.RestoreTabs && r.Origins.All() && len(r.Overrides.Names()) == 0 && len(r.Extensions) == 0 && r.Passkeys == nil
	if report == nil || o.source.Type != SourceUserDefault || report.Path == PathParked || !plain || k.svc.cfg.Standby.Size == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.of(o.userID)
	if d.engine != r.Engine {
		d.engine, d.times = r.Engine, nil
	}
	if d.times = append(d.times, now); len(d.times) > oftenTimes {
		d.times = d.times[1:]
	}
}

// of is a user's demand; the caller holds the lock.
func (k *standbys) of(userID string) *demand {
	if k.users[userID] == nil {
		k.users[userID] = &demand{}
	}
	return k.users[userID]
}

// told takes in a user's settings.
func (k *standbys) told(userID string, set Settings) {
	if k.svc.cfg.Standby.Size == 0 {
		return
	}
	k.mu.Lock()
	d := k.of(userID)
	d.asked = given(set.Standby) > 0
	k.mu.Unlock()
	k.look()
}

// recall finds the users whose settings ask for standbys, when the daemon starts.
func (k *standbys) recall(ctx context.Context) error {
	if k.svc.cfg.Standby.Size == 0 {
		return nil
	}
	users, err := k.svc.Catalogue.UsersWithSettings(ctx)
	for _, u := range users {
		set, err := settingsOf(u)
		if err != nil {
			k.svc.Log.Warn("a user's settings cannot be read", "error", err)
			continue
		}
		if given(set.Standby) > 0 {
			k.told(u.ID, set)
		}
	}
	return err
}

// plan finds which standbys there should be, the most wanted first: those that
// settings ask for, then those of who holds some and uses them, then the
// latest; as far as there is room.
func (k *standbys) plan() ([]want, error) {
	now := k.svc.Now()
	k.mu.Lock()
	maps.DeleteFunc(k.users, func(_ string, d *demand) bool { return !d.asked && now.Sub(d.last()) > oftenWithin })
	known := map[string]demand{}
	for userID, d := range k.users {
		if d.asked || d.often(now) {
			known[userID] = *d
		}
	}
	k.mu.Unlock()
	users := slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		x, y := known[a], known[b]
		return cmp.Or(first(x.asked, y.asked), first(k.uses(a, x, now), k.uses(b, y, now)), y.last().Compare(x.last()), cmp.Compare(a, b))
	})
	var plan []want
	holders := map[string]bool{}
	left := k.room()
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

// first orders those for whom something is so before the others.
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

func (k *standbys) uses(userID string, d demand, now time.Time) bool {
	return k.holders[userID] && now.Sub(d.last()) <= inUseFor
}

// room is how many standbys there may be: what spares leave of the places that no
// session has.
func (k *standbys) room() int {
	_, spares := k.svc.spared()
	return min(k.svc.cfg.Standby.Size, k.svc.slots.left()-spares)
}

// wants finds the default of a user and how many Chromes are to stand by with it.
func (k *standbys) wants(ctx context.Context, userID string, d demand) (w want, err error) {
	s := k.svc
	set, err := s.settings(ctx, userID)
	if err != nil {
		return w, err
	}
	n, engine := 1, d.engine // it is restored often
	if set.Standby != nil {
		n = int(*set.Standby)
		if engine, err = s.engineOf(ctx, Create{}, userID); err != nil {
			return w, nil // a create is told that it is not there
		}
	}
	current, err := s.Catalogue.Default(ctx, userID)
	if n == 0 || fault.Is(err, fault.DefaultNotFound) {
		return w, nil
	}
	if err == nil {
		w.snapshot, err = s.Catalogue.Snapshot(ctx, current.SnapshotID)
	}
	if fault.Is(err, fault.SnapshotNotFound) {
		return w, nil // it has moved on between the two looks, which is told as well
	}
	if err != nil {
		return w, err
	}
	if engine == browser.EngineChrome {
		// Their workers run when the profile comes up, whether a tab does or not.
		if has, err := s.Catalogue.SnapshotExtensions(ctx, w.snapshot.ID); err != nil || len(has) > 0 {
			return w, err
		}
	}
	w.key, w.n = pool.Key{Snapshot: w.snapshot.ID, Engine: engine}, n
	return w, nil
}
