package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Sizes of a run of restores: every saveEvery-th session is saved, and the next ones restore
// that.
const (
	saveEvery     = 10
	warmUpShare   = 10               // one tenth of them; by then everything that is made once is there
	readyDeadline = 30 * time.Second // of a spare, and of a verification
)

// restoreInARow restores the probe profile many times, in spares of full Chrome. Each
// restored tab must show the login, and each verification must find no difference. It fails
// if something is left over. It returns how many restores there were, and how many of them
// by gates.
func (b *bench) restoreInARow(ctx context.Context, count int) (rows [][]string, err error) {
	// The daemon of the lanes has ended: counting its goroutines ends it.
	if b.ours, err = b.host(ctx, nil); err != nil {
		return nil, err
	}
	idle, err := b.ours.asBefore(ctx, nil)
	if err != nil {
		return nil, err
	}
	r := &restores{h: b.ours, from: b.ours.snapshot, spares: idle.chromes}
	if err := r.run(ctx, count/warmUpShare); err != nil {
		return nil, err
	}
	before, err := r.h.asBefore(ctx, nil)
	if err != nil {
		return nil, err
	}
	r.gates = 0
	rest := count - count/warmUpShare
	if err := r.run(ctx, rest); err != nil {
		return nil, err
	}
	after, err := r.h.asBefore(ctx, &before)
	if err != nil {
		return nil, err
	}
	return [][]string{
		{"then restores in a row, in spares of full Chrome", fmt.Sprint(rest)},
		{"of them by gates", fmt.Sprint(r.gates)},
		{"the daemon's memory, MB, meanwhile", fmt.Sprintf("%d → %d", before.rss>>20, after.rss>>20)},
	}, leaks(before, after)
}

// restores is a run of restores on one daemon.
type restores struct {
	h      *host
	from   string // the snapshot that is restored
	spares int    // of both engines
	gates  int    // restores by which the environment entered a spare's profile
}

// run restores count times, and removes what it has saved.
func (r *restores) run(ctx context.Context, count int) error {
	for n := range count {
		if err := r.once(ctx, n%saveEvery == saveEvery-1); err != nil {
			return fmt.Errorf("restore %d of %d: %w", n+1, count, err)
		}
	}
	last := r.from
	if r.from = r.h.snapshot; last == r.from {
		return nil
	}
	return r.h.forget(ctx, last)
}

// once restores, checks and ends one session. With save, later sessions restore what it
// saves.
func (r *restores) once(ctx context.Context, save bool) error {
	if err := r.awaitSpare(ctx); err != nil {
		return err
	}
	s, err := r.h.create(ctx, obj{"restore_from_environment_id": r.from})
	if err != nil {
		return err
	}
	t, err := s.front(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := t.await(ctx, loggedIn); err != nil {
		return errors.Join(errLoggedOut, err)
	}
	if err := r.verified(ctx, s); err != nil {
		return err
	}
	if s.ByGates() {
		r.gates++
	}
	if !save {
		return discard(ctx, s)
	}
	old := r.from
	if r.from, err = s.end(ctx, "filesystem", false); err != nil || old == r.h.snapshot {
		return err
	}
	return r.h.forget(ctx, old)
}

// awaitSpare waits until the daemon has all its spares.
func (r *restores) awaitSpare(ctx context.Context) error {
	return poll(ctx, readyDeadline, func() (bool, error) { return len(r.h.chromes().mains()) >= r.spares, nil })
}

// verified waits for the verification of a session's restore.
func (r *restores) verified(ctx context.Context, s *session) error {
	return poll(ctx, readyDeadline, func() (bool, error) {
		var now struct {
			Restored struct {
				Verification string
				Differences  []any
			}
		}
		err := r.h.Call(ctx, http.MethodGet, "/v1/sessions/"+s.ID, nil, &now)
		if now.Restored.Verification == "mismatch" {
			err = fmt.Errorf("session %s differs from what was saved: %v", s.ID, now.Restored.Differences)
		}
		return now.Restored.Verification == "ok", err
	})
}
