// Package undo keeps the profiles of sessions that were discarded at their end, so that a
// second end, or a resume, can still save them. A profile is kept for a while only: it
// holds logins, as the profile of a live session does. Nothing is kept across a stop or a
// kill of the daemon.
package undo

import (
	"context"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/save"
)

// Limits bound what is kept. Beyond them, the user who holds most loses that user's oldest
// profile.
type Limits struct {
	Window time.Duration // how long a profile is kept; 0: none is kept
	Count  int
	Bytes  int64 // on disk, of all profiles together
}

// Profile is a kept profile: the save that has not been made.
type Profile struct {
	Job   save.Job // without a Chrome; its Document is complete
	Until time.Time
	bytes int64
}

// Keeper keeps profiles. Its methods are safe for concurrent use.
type Keeper struct {
	limits Limits
	now    func() time.Time
	log    *slog.Logger

	mu     sync.Mutex
	kept   []Profile // oldest first
	closed bool
	wake   chan struct{} // holds a value after a change of kept
}

var _ save.Undo = (*Keeper)(nil)

// New makes a Keeper. If Limits.Window is not 0, [Keeper.Run] must run.
func New(l Limits, now func() time.Time, log *slog.Logger) *Keeper {
	return &Keeper{limits: l, now: now, log: log, wake: make(chan struct{}, 1)}
}

// On reports whether profiles are kept at all.
func (k *Keeper) On() bool { return k.limits.Window > 0 }

// Keep keeps the profile of a job whose Chrome has ended, and gives the profile's user ID
// back. If it cannot be kept, it is removed, and ok is false.
func (k *Keeper) Keep(j save.Job) (until time.Time, ok bool) {
	j.Chrome = nil
	if err := j.Dir.Reclaim(); err != nil {
		k.log.Error("the profile of a discarded session cannot be kept for --undo-window", "session", j.Session.ID, "error", err)
		browsers.Remove(j.Dir, k.log)
		return time.Time{}, false
	}
	p := Profile{Job: j, Until: k.now().Add(k.limits.Window).UTC().Truncate(time.Millisecond), bytes: size(j.Dir.Path)}
	return p.Until, k.Add(p)
}

// Add keeps a profile that [Keeper.Take] returned. It removes profiles until the rest is
// within the limits, perhaps this one; then ok is false.
func (k *Keeper) Add(p Profile) (ok bool) {
	k.mu.Lock()
	at, _ := slices.BinarySearchFunc(k.kept, p, func(a, b Profile) int { return a.Until.Compare(b.Until) })
	k.kept = slices.Insert(k.kept, at, p)
	gone := k.evict()
	ok = slices.ContainsFunc(k.kept, func(one Profile) bool { return one.Job.Dir == p.Job.Dir })
	k.changed()
	k.mu.Unlock()
	k.remove(gone)
	return ok
}

// evict takes the profiles that exceed the limits out of the list. The caller holds the
// lock.
func (k *Keeper) evict() (gone []Profile) {
	if k.closed {
		return k.cut(len(k.kept))
	}
	count := func(Profile) int64 { return 1 }
	bytes := func(p Profile) int64 { return p.bytes }
	for {
		var at int
		switch {
		case k.total(count) > int64(k.limits.Count):
			at = k.oldestOfLargest(count)
		case k.total(bytes) > k.limits.Bytes:
			at = k.oldestOfLargest(bytes)
		default:
			return gone
		}
		gone = append(gone, k.kept[at])
		k.kept = slices.Delete(k.kept, at, at+1)
	}
}

// total returns the size of all profiles. The caller holds the lock.
func (k *Keeper) total(size func(Profile) int64) (sum int64) {
	for _, p := range k.kept {
		sum += size(p)
	}
	return sum
}

// oldestOfLargest returns the index of the oldest profile of the user who holds most. If
// several users hold as much, it is the oldest of them all. The caller holds the lock.
func (k *Keeper) oldestOfLargest(size func(Profile) int64) (at int) {
	held := map[string]int64{}
	for _, p := range k.kept {
		held[p.Job.Session.UserID] += size(p)
	}
	for i, p := range k.kept {
		if held[p.Job.Session.UserID] > held[k.kept[at].Job.Session.UserID] {
			at = i
		}
	}
	return at
}

// Take takes the profile of a session, to save it; ok is false if none is kept. The caller
// removes it, or gives it back with [Keeper.Add].
func (k *Keeper) Take(sessionID string) (_ Profile, ok bool) {
	k.mu.Lock()
	gone := k.cut(k.over())
	var taken Profile
	at := slices.IndexFunc(k.kept, func(p Profile) bool { return p.Job.Session.ID == sessionID })
	if at >= 0 {
		taken = k.kept[at]
		k.kept = slices.Delete(k.kept, at, at+1)
	}
	k.mu.Unlock()
	k.remove(gone)
	return taken, at >= 0
}

// Until returns until when the profile of a session can be taken; ok is false if none is
// kept.
func (k *Keeper) Until(sessionID string) (_ time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(k.kept, func(p Profile) bool { return p.Job.Session.ID == sessionID && k.now().Before(p.Until) })
	if at < 0 {
		return time.Time{}, false
	}
	return k.kept[at].Until, true
}

// Clear removes all profiles, to free space on the disk. It reports whether there were any.
func (k *Keeper) Clear() bool {
	k.mu.Lock()
	gone := k.cut(len(k.kept))
	k.mu.Unlock()
	k.remove(gone)
	return len(gone) > 0
}

// Run removes profiles when their time is over, and all of them when ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-k.wake:
		case <-ctx.Done():
			k.mu.Lock()
			k.closed = true
			k.mu.Unlock()
			k.Clear()
			return
		}
		if next, some := k.next(); some {
			timer.Reset(next)
		}
	}
}

// next removes the profiles whose time is over, and returns the time until the next one's
// is.
func (k *Keeper) next() (in time.Duration, some bool) {
	k.mu.Lock()
	gone := k.cut(k.over())
	if some = len(k.kept) > 0; some {
		in = max(k.kept[0].Until.Sub(k.now()), time.Millisecond)
	}
	k.mu.Unlock()
	k.remove(gone)
	return in, some
}

// over returns how many profiles' time is over. The caller holds the lock.
func (k *Keeper) over() (n int) {
	for n < len(k.kept) && !k.now().Before(k.kept[n].Until) {
		n++
	}
	return n
}

// cut takes the n oldest profiles out of the list. The caller holds the lock.
func (k *Keeper) cut(n int) []Profile {
	gone := slices.Clone(k.kept[:n])
	k.kept = slices.Delete(k.kept, 0, n)
	return gone
}

// remove deletes profiles. It takes long, so the caller does not hold the lock.
func (k *Keeper) remove(gone []Profile) {
	for _, p := range gone {
		browsers.Remove(p.Job.Dir, k.log)
	}
}

func (k *Keeper) changed() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// size returns the bytes of the files below a folder. A file that cannot be read counts as
// empty: the limit is approximate.
func size(folder string) (bytes int64) {
	_ = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}
