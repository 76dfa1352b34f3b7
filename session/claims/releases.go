package claims

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Releases is a [Store] that repeats releases which have failed, until they succeed, and releases
// what may have been claimed although the claim's answer was lost. Otherwise what a node released
// while the database was away would stay claimed for as long as the node keeps its lease. Its
// methods are safe for concurrent use.
type Releases struct {
	Store
	pause  time.Duration // between two tries
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	trying sync.Mutex // held while a release is repeated

	mu    sync.Mutex
	due   map[string]release // by name
	works bool               // a goroutine repeats them
}

// NewReleases makes Releases over a store. pause is the time between two tries; 0: a second. The
// caller closes it before the store.
func NewReleases(store Store, pause time.Duration) *Releases {
	if pause <= 0 {
		pause = time.Second
	}
	r := &Releases{Store: store, pause: pause, due: map[string]release{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close ends the tries. What was not released ends with the lease.
func (r *Releases) Close() error {
	r.cancel()
	r.work.Wait()
	return nil
}

// ReleaseSession implements [profiles.ClaimStore].
func (r *Releases) ReleaseSession(ctx context.Context, sessionID string) error {
	return r.try(ctx, r.session(sessionID))
}

// ClaimSession implements [profiles.ClaimStore].
func (r *Releases) ClaimSession(ctx context.Context, sessionID, keyID string) (*profiles.SessionClaim, error) {
	own := r.session(sessionID)
	r.forget(own)
	held, err := r.Store.ClaimSession(ctx, sessionID, keyID)
	return held, r.claimed(own, err)
}

// LeaveCheck implements [profiles.ClaimStore].
func (r *Releases) LeaveCheck(ctx context.Context, userID string) error {
	return r.try(ctx, r.check(userID))
}

// EnterCheck implements [profiles.ClaimStore].
func (r *Releases) EnterCheck(ctx context.Context, c profiles.CheckClaim) (bool, error) {
	own := r.check(c.UserID)
	r.forget(own)
	entered, err := r.Store.EnterCheck(ctx, c)
	return entered, r.claimed(own, err)
}

// ReleaseSnapshot implements [profiles.ClaimStore].
func (r *Releases) ReleaseSnapshot(ctx context.Context, holdID string) error {
	return r.try(ctx, r.hold(holdID))
}

// HoldSnapshot implements [profiles.ClaimStore].
func (r *Releases) HoldSnapshot(ctx context.Context, holdID, snapshotID, purpose string) error {
	return r.claimed(r.hold(holdID), r.Store.HoldSnapshot(ctx, holdID, snapshotID, purpose))
}

// BeginWaiting implements [profiles.WaitingStore].
func (r *Releases) BeginWaiting(ctx context.Context, w profiles.WaitingCreate, pause time.Duration) (time.Time, error) {
	own := r.waiting(w.ID)
	r.forget(own)
	since, err := r.Store.BeginWaiting(ctx, w, pause)
	return since, r.claimed(own, err)
}

// EndWaiting implements [profiles.WaitingStore].
func (r *Releases) EndWaiting(ctx context.Context, id string) error {
	return r.try(ctx, r.waiting(id))
}

// ReleaseArchive implements [profiles.ArchiveUseStore].
func (r *Releases) ReleaseArchive(ctx context.Context, archiveID, snapshotID string) error {
	return r.try(ctx, r.archive(archiveID, snapshotID))
}

// ReserveArchive implements [profiles.ArchiveUseStore].
func (r *Releases) ReserveArchive(ctx context.Context, archiveID, snapshotID string) (bool, error) {
	own := r.archive(archiveID, snapshotID)
	r.forget(own)
	reserved, err := r.Store.ReserveArchive(ctx, archiveID, snapshotID)
	return reserved, r.claimed(own, err)
}

// release is a release of something with a name.
type release struct {
	name string
	do   func(context.Context) error
}

func (r *Releases) session(id string) release {
	return release{"session " + id, func(ctx context.Context) error { return r.Store.ReleaseSession(ctx, id) }}
}

func (r *Releases) check(user string) release {
	return release{"check " + user, func(ctx context.Context) error { return r.Store.LeaveCheck(ctx, user) }}
}

func (r *Releases) hold(id string) release {
	return release{"hold " + id, func(ctx context.Context) error { return r.Store.ReleaseSnapshot(ctx, id) }}
}

func (r *Releases) waiting(id string) release {
	return release{"waiting " + id, func(ctx context.Context) error { return r.Store.EndWaiting(ctx, id) }}
}

func (r *Releases) archive(id, snapshot string) release {
	return release{"archive " + id + " " + snapshot, func(ctx context.Context) error { return r.Store.ReleaseArchive(ctx, id, snapshot) }}
}

// try releases something now. If that fails, it is repeated later.
func (r *Releases) try(ctx context.Context, own release) error {
	err := own.do(ctx)
	r.later(own, err)
	return err
}

// claimed returns the error of a claim. If there is one, the claim may have been made all the
// same, and is released.
func (r *Releases) claimed(own release, err error) error {
	r.later(own, err)
	return err
}

// refused reports whether an error says that nothing is claimed: the catalogue has answered so, or
// the lease has ended, and with it all claims.
func refused(err error) bool {
	switch fault.CodeOf(err) {
	case fault.NodeLost, fault.SnapshotNotFound:
		return true
	}
	return false
}

// later repeats a release if there was an error.
func (r *Releases) later(own release, err error) {
	if err == nil || refused(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	r.due[own.name] = own
	if !r.works {
		r.works = true
		r.work.Go(r.repeat)
	}
}

// forget drops a release before the same thing is claimed again, and waits for one that is being
// repeated: it would remove the new claim.
func (r *Releases) forget(own release) {
	r.mu.Lock()
	_, due := r.due[own.name]
	r.mu.Unlock()
	if !due {
		return
	}
	r.trying.Lock()
	defer r.trying.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.due, own.name)
}

// repeat repeats releases until none is due.
func (r *Releases) repeat() {
	for {
		select {
		case <-time.After(r.pause):
		case <-r.ctx.Done():
			return
		}
		for _, own := range r.all() {
			if !r.again(own) {
				break // the others would fail too
			}
		}
		r.mu.Lock()
		if len(r.due) == 0 {
			r.works = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
}

func (r *Releases) all() []release {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.due))
}

// again repeats one release, unless it was forgotten.
func (r *Releases) again(own release) bool {
	r.trying.Lock()
	defer r.trying.Unlock()
	r.mu.Lock()
	_, due := r.due[own.name]
	r.mu.Unlock()
	if !due {
		return true
	}
	if err := own.do(r.ctx); err != nil && !refused(err) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.due, own.name)
	return true
}
