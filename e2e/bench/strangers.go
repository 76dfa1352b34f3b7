package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// strangersTitle is the heading of the page's section about users beside a hostile one.
const strangersTitle = "Beside a hostile user"

// Sizes of the run with strangers: 8 sessions of full Chrome and 24 of the shell, of three
// users, one of whom is hostile in every second block.
const (
	strangerBlocks   = 12
	strangerMemory   = 1 << 30 // bytes, of each session
	strangerCommands = 20
	commandPause     = 200 * time.Millisecond
	lanePause        = 8 * time.Second // at most, between two sessions of a lane
)

// strangerLanes are the sessions that a user has at a time, by engine.
type strangerLanes struct {
	user   string
	chrome int
	shell  int
}

func honestUsers() []strangerLanes { return []strangerLanes{{"ann", 3, 8}, {"ben", 3, 8}} }

func hostileUser() strangerLanes { return strangerLanes{"eve", 2, 8} }

// strangers is one run. Its times are those of the honest users, with and without a hostile
// one.
type strangers struct {
	h    *host
	keys map[string]string // by user

	mu      sync.Mutex
	times   [2]map[string][]float64 // milliseconds by what was timed; [1] beside the hostile user
	hostile atomic.Bool
	attacks map[string]int
}

// runStrangers has two honest users work for a time, beside a hostile third one in every
// second block. It writes a section of the page. It fails if an honest session is not
// logged in as itself, a save is lost, a call of an honest user fails, or something is left.
func (b *bench) runStrangers(ctx context.Context, total time.Duration) error {
	h, err := b.host(ctx, []string{"STASIS_SPARES=1", "STASIS_SHELL_SPARES=1"}, append(guardedFlags(), "--max-sessions", "32", "--parked", "8", "--session-memory", fmt.Sprint(strangerMemory))...)
	b.others = append(b.others, h)
	if err != nil {
		return err
	}
	s := &strangers{h: h, keys: map[string]string{}, times: [2]map[string][]float64{{}, {}}, attacks: map[string]int{}}
	for _, u := range append(honestUsers(), hostileUser()) {
		var key struct{ Secret string }
		if err := h.Call(ctx, http.MethodPost, "/v1/keys", obj{"name": u.user, "user_id": u.user, "rights": []string{"use"}}, &key); err != nil {
			return err
		}
		s.keys[u.user] = key.Secret
	}
	if err := h.Call(ctx, http.MethodPatch, "/v1/users/"+hostileUser().user, obj{"quotas": obj{"sessions": hostileUser().chrome + hostileUser().shell, "parked": 2, "snapshots": 50, "requests_per_second": 20, "sockets": 40}}, nil); err != nil {
		return err
	}
	before, err := h.asBefore(ctx, nil)
	if err != nil {
		return err
	}
	lanes := s.lanes(b.seed)
	for block := range strangerBlocks {
		s.hostile.Store(block%2 == 1)
		progress("block %d of %d", block+1, strangerBlocks)
		if err := s.block(ctx, lanes, total/strangerBlocks, b.seed+uint64(block)); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		if err := l.clear(ctx); err != nil {
			return err
		}
	}
	result := s.section(b, total)
	fmt.Print(result.markdown())
	after, err := h.asBefore(ctx, &before)
	if err := errors.Join(err, leaks(before, after)); err != nil {
		return err
	}
	return replaceSection(filepath.Join(b.folder, guardsFile), result)
}

// lanes returns the lanes of the honest users.
func (s *strangers) lanes(seed uint64) (all []*honestLane) {
	for _, u := range honestUsers() {
		for n := range u.chrome + u.shell {
			engine := shell
			if n < u.chrome {
				engine = chrome
			}
			all = append(all, &honestLane{strangers: s, user: u.user, name: fmt.Sprintf("%s-%d", u.user, n), engine: engine,
				random: rand.New(rand.NewPCG(seed, uint64(len(all))))})
		}
	}
	return all
}

// block runs all lanes for a time, and the hostile user if it is its turn. The hostile user
// begins first and ends last.
func (s *strangers) block(ctx context.Context, lanes []*honestLane, length time.Duration, seed uint64) error {
	attackCtx, stop := context.WithCancel(ctx)
	var attackers sync.WaitGroup
	if s.hostile.Load() {
		s.attack(attackCtx, &attackers, seed)
	}
	end := time.Now().Add(length)
	group, inGroup := errgroup.WithContext(ctx)
	for _, l := range lanes {
		group.Go(func() error {
			for time.Now().Before(end) {
				if err := l.run(inGroup); err != nil {
					return fmt.Errorf("%s: %w", l.name, err)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	stop()
	attackers.Wait()
	return errors.Join(err, s.h.CallAs(ctx, s.keys[hostileUser().user], http.MethodDelete, "/v1/sessions", nil, nil))
}

// timed times a call of an honest user.
func (s *strangers) timed(what string, do func() error) error {
	ms, err := timed(do)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	side := 0
	if s.hostile.Load() {
		side = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[side][what] = append(s.times[side][what], ms)
	return nil
}

// honestLane is one place of an honest user. It has a session nearly all the time.
type honestLane struct {
	*strangers
	user, name, engine string
	random             *rand.Rand
	kept               string   // the session that is restored next; "" for none
	snapshots          []string // all that it has saved
}

// run creates a session, and saves it; or restores the saved one, uses it and saves it
// again. A restored session must be logged in, and must be the lane's own.
func (l *honestLane) run(ctx context.Context) error {
	fields := obj{"engine": l.engine, "wait_seconds": 60}
	what := "create"
	if l.kept != "" && l.random.IntN(2) == 0 {
		what, fields["restore_from_session_id"] = "restore", l.kept
	}
	s := &session{host: l.h}
	err := l.timed(what, func() error {
		return l.h.CallAs(ctx, l.keys[l.user], http.MethodPost, "/v1/sessions", fields, &s.Session)
	})
	if err != nil {
		return err
	}
	t, err := s.front(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := l.use(ctx, t, what == "restore"); err != nil {
		return fmt.Errorf("session %s, %s: %w", s.ID, what, err)
	}
	for range strangerCommands {
		if err := l.timed("command", func() error { return oneCommand(ctx, t) }); err != nil {
			return err
		}
		pause(ctx, commandPause)
	}
	mode := []string{"filesystem", "filesystem", "memory"}[l.random.IntN(3)]
	var ended struct{ Snapshot struct{ ID string } }
	if err := l.h.CallAs(ctx, l.keys[l.user], http.MethodDelete, "/v1/sessions/"+s.ID+"?save_snapshot_mode="+mode, nil, &ended); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if ended.Snapshot.ID == "" {
		return fmt.Errorf("session %s was not saved", s.ID)
	}
	l.kept, l.snapshots = s.ID, append(l.snapshots, ended.Snapshot.ID)
	pause(ctx, time.Duration(l.random.Int64N(int64(lanePause))))
	return l.forgetOld(ctx)
}

// use logs in, or checks the login and the lane's own name in a restored session.
func (l *honestLane) use(ctx context.Context, t *tab, restored bool) error {
	if !restored {
		if err := l.h.authenticate(ctx, t); err != nil {
			return err
		}
		var is bool
		return t.evaluate(ctx, fmt.Sprintf(`localStorage.setItem("lane", %q), document.cookie = "lane=%s; max-age=86400", true`, l.name, l.name), &is)
	}
	if err := t.visit(ctx, l.h.me(), loggedIn); err != nil {
		return errors.Join(errLoggedOut, err)
	}
	var got string
	if err := t.evaluate(ctx, `localStorage.getItem("lane") + " " + document.cookie.match(/lane=([^;]*)/)?.[1]`, &got); err != nil {
		return err
	}
	if want := l.name + " " + l.name; got != want {
		return fmt.Errorf("the session is that of %q, want %q", got, want)
	}
	return nil
}

// forgetOld deletes all snapshots but the newest two, one of which may be a parked Chrome's.
func (l *honestLane) forgetOld(ctx context.Context) error {
	for len(l.snapshots) > 2 {
		if err := l.h.forget(ctx, l.snapshots[0]); err != nil {
			return err
		}
		l.snapshots = l.snapshots[1:]
	}
	return nil
}

// clear restores the lane's last save once more, and deletes everything that it has kept.
func (l *honestLane) clear(ctx context.Context) error {
	if l.kept == "" {
		return nil
	}
	s := &session{host: l.h}
	if err := l.h.CallAs(ctx, l.keys[l.user], http.MethodPost, "/v1/sessions", obj{"engine": l.engine, "restore_from_session_id": l.kept, "wait_seconds": 60}, &s.Session); err != nil {
		return fmt.Errorf("%s: the last save is lost: %w", l.name, err)
	}
	t, err := s.front(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := l.use(ctx, t, true); err != nil {
		return fmt.Errorf("%s: the last save: %w", l.name, err)
	}
	if _, err := s.end(ctx, "none", false); err != nil {
		return err
	}
	for _, id := range l.snapshots {
		if err := l.h.forget(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// pause waits, or returns when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// section has a row for each thing that was timed, and one for each attack.
func (s *strangers) section(b *bench, total time.Duration) section {
	out := section{
		title: strangersTitle,
		text: fmt.Sprintf("`make strangers` on %s, %s, in %d blocks: two users have 6 sessions of full Chrome and 16 of the shell on one daemon. In every\n"+
			"second block a hostile third user has 2 and 8 more, and attacks. Milliseconds, of the first two users only. Every\n"+
			"restored session was logged in as itself, every save was restored, and nothing was left at the end. %s",
			time.Now().UTC().Format(time.DateOnly), total, strangerBlocks, machineLine(b.machine)),
		head: []string{"", "count", "median", "95th percentile", "count beside the hostile user", "median", "95th percentile", "× of the percentiles"},
	}
	for _, what := range slices.Sorted(maps.Keys(s.times[0])) {
		alone, beside := s.times[0][what], s.times[1][what]
		p := func(of []float64) float64 { return quantile(of, 0.95) }
		out.rows = append(out.rows, []string{what, fmt.Sprint(len(alone)), number(spread(alone).median), number(p(alone)),
			fmt.Sprint(len(beside)), number(spread(beside).median), number(p(beside)), number(p(beside) / p(alone))})
	}
	for _, what := range slices.Sorted(maps.Keys(s.attacks)) {
		out.rows = append(out.rows, []string{"attack: " + what, "", "", "", fmt.Sprint(s.attacks[what]), "", "", ""})
	}
	return out
}
