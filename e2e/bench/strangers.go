package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// strangersTitle is the heading of the page's section about users beside a hostile one.
const strangersTitle = "Beside a hostile user"

// Sizes of the run with strangers: 8 sessions of full Chrome and 24 of the shell, of three
// users, one of whom is hostile in every second block.
const (
	strangerBlock  = 5 * time.Minute // the longest block
	strangerBlocks = 4               // the least number of blocks
	strangerMemory = 1 << 30         // bytes, of each session
	// strangerRamp is the time in which the honest users begin, which does not count.
	strangerRamp  = time.Minute
	clearDeadline = 10 * time.Minute
	// strangerGrace is how long calls of the honest users that have begun may take after the
	// end of the run, and how long the hostile user's sessions may take to end.
	strangerGrace = 2 * time.Minute
)

// strangerLanes are the sessions that a user has at a time, by engine.
type strangerLanes struct {
	user   string
	chrome int
	shell  int
}

func honestUsers() []strangerLanes { return []strangerLanes{{"ann", 3, 8}, {"ben", 3, 8}} }

func hostileUser() strangerLanes { return strangerLanes{"eve", 2, 8} }

// side says beside whom the honest users work.
type side int

const (
	alone   side = iota // no hostile user
	beside              // a hostile user
	loops               // programs of the least priority keep all processors busy; see [busyLoops]
	between             // the hostile user's sessions are ending: not counted
)

// turns are the sides of the blocks of a run, again and again.
func turns() []side { return []side{alone, beside, loops, beside} }

// strangers is one run. Its times are those of the honest users, by side.
type strangers struct {
	h    *host
	keys map[string]string // by user

	mu       sync.Mutex
	side     side
	times    [between]map[string][]float64 // milliseconds, by side and by what was timed
	failures []error                       // the first calls of honest users that failed
	attacks  map[string]int
}

// runStrangers has two honest users work for a time: alone, beside a hostile third one, and
// beside programs of the least priority, in blocks that take turns. It writes a section of the
// page. It fails if an honest session is not logged in as itself, a save is lost, a call of an
// honest user fails, or something is left.
func (b *bench) runStrangers(ctx context.Context, total time.Duration) error {
	h, err := b.host(ctx, []string{"STASIS_SPARES=1", "STASIS_SHELL_SPARES=1"}, append(guardedFlags(), "--max-sessions", "36", "--parked", "8", "--session-memory", fmt.Sprint(strangerMemory))...)
	b.others = append(b.others, h)
	if err != nil {
		return err
	}
	s := &strangers{h: h, keys: map[string]string{}, times: [between]map[string][]float64{{}, {}, {}}, attacks: map[string]int{}}
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
	// A spare of the shell starts only after a create has asked for one. It must count before.
	first, err := h.create(ctx, obj{"engine": shell})
	if err == nil {
		_, err = first.end(ctx, "none", false)
	}
	if err != nil {
		return err
	}
	h.spares = 2
	if err := h.ready(ctx, 0); err != nil {
		return err
	}
	before, err := h.asBefore(ctx, nil)
	if err != nil {
		return err
	}
	lanes := s.lanes(b.seed)
	if err := s.work(ctx, lanes, total, b.seed); err != nil {
		return err
	}
	s.clearLanes(ctx, lanes)
	result := s.section(b, total)
	fmt.Print(result.markdown())
	if err := s.clearHostile(ctx); err != nil {
		return err
	}
	after, err := h.asBefore(ctx, &before)
	if err := errors.Join(append(s.failures, err, leaks(before, after))...); err != nil {
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
			all = append(all, newHonestLane(s, u.user, fmt.Sprintf("%s-%d", u.user, n), engine, seed, uint64(len(all))))
		}
	}
	return all
}

// work runs all lanes for a time, in blocks that take turns. It returns soon after that time,
// also if the machine is overloaded.
func (s *strangers) work(ctx context.Context, lanes []*honestLane, total time.Duration, seed uint64) error {
	ctx, cancel := context.WithTimeout(ctx, strangerRamp+total+strangerGrace)
	defer cancel()
	s.turn(between)
	end := time.Now().Add(strangerRamp + total)
	group, inGroup := errgroup.WithContext(ctx)
	for _, l := range lanes {
		group.Go(func() error {
			pause(inGroup, l.until(strangerRamp))
			for time.Now().Before(end) && inGroup.Err() == nil {
				l.run(inGroup, end)
			}
			return nil
		})
	}
	pause(ctx, strangerRamp)
	sides := turns()
	blocks := max(strangerBlocks, int(total/strangerBlock)/len(sides)*len(sides))
	for block := range blocks {
		progress("block %d of %d: %s", block+1, blocks, s.counts())
		s.block(inGroup, total/time.Duration(blocks), sides[block%len(sides)], seed+uint64(block))
	}
	s.turn(between)
	progress("the end of the last sessions: %s", s.counts())
	return group.Wait()
}

// block waits for a time on a side. When it ends, the hostile user's sessions have ended.
func (s *strangers) block(ctx context.Context, length time.Duration, on side, seed uint64) {
	end := time.Now().Add(length)
	if on != beside {
		if on == loops {
			defer s.busyLoops(ctx)()
		}
		s.turn(on)
		pause(ctx, time.Until(end))
		s.turn(between)
		return
	}
	s.turn(beside)
	attackCtx, stop := context.WithCancel(ctx)
	defer stop()
	var attackers sync.WaitGroup
	s.attack(attackCtx, &attackers, seed)
	pause(ctx, time.Until(end))
	s.turn(between)
	stop()
	attackers.Wait()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), strangerGrace)
	defer cancel()
	if err := s.h.Call(ending, http.MethodDelete, "/v1/sessions?save_snapshot_mode=none&user_id="+hostileUser().user, nil, nil); err != nil {
		s.fail("end of the hostile user's sessions", err)
	}
}

// busyLoops starts a loop for each processor, of the scheduling class that gets only what all
// others leave (SCHED_IDLE of sched(7)). No daemon could slow a hostile user down more without
// leaving processors idle, so the times beside the loops are what can be had at best. The
// caller calls stop.
func (s *strangers) busyLoops(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			err := exec.CommandContext(ctx, "chrt", "--idle", "0", "sh", "-c", "while :; do :; done").Run()
			if ctx.Err() == nil {
				s.fail("loop of the least priority", err)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// turn begins a side.
func (s *strangers) turn(to side) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.side = to
}

func (s *strangers) now() side {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.side
}

// timed times a call of an honest user. It counts if the side has not changed meanwhile.
func (s *strangers) timed(what string, do func() error) error {
	began := s.now()
	ms, err := timed(do)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.side == began && began != between {
		s.times[began][what] = append(s.times[began][what], ms)
	}
	return nil
}

// mostFailures is how many failures a run reports in full.
const mostFailures = 20

// fail keeps a call of an honest user that failed.
func (s *strangers) fail(what string, err error) {
	err = fmt.Errorf("%s: %w", what, err)
	progress("failed: %v", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) < mostFailures {
		s.failures = append(s.failures, err)
	}
}

// counts says how much was timed so far.
func (s *strangers) counts() (text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(s.times[alone])) {
		text += what
		for _, of := range s.times {
			text += fmt.Sprintf(" %d: %.0f %.0f", len(of[what]), quantile(of[what], 0.5), quantile(of[what], 0.95))
		}
		text += "; "
	}
	return text
}

// clearLanes restores the last save of each lane, within a time that is long enough also if
// the machine has other work.
func (s *strangers) clearLanes(ctx context.Context, lanes []*honestLane) {
	ctx, cancel := context.WithTimeout(ctx, clearDeadline)
	defer cancel()
	for _, l := range lanes {
		if err := l.clear(ctx); err != nil {
			s.fail("last save", fmt.Errorf("%s: %w", l.name, err))
		}
	}
}

// clearHostile deletes what the hostile user has saved.
func (s *strangers) clearHostile(ctx context.Context) error {
	var all struct{ Snapshots []struct{ ID string } }
	if err := s.h.Call(ctx, http.MethodGet, "/v1/snapshots?limit=1000&user_id="+hostileUser().user, nil, &all); err != nil {
		return err
	}
	for _, snap := range all.Snapshots {
		if err := s.h.forget(ctx, snap.ID); err != nil {
			return err
		}
	}
	return nil
}
