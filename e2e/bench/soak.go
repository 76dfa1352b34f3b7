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
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Sizes of the soak: the number of lanes, the bounds of the pause between two killed
// Chromes, and the first part of the time, whose end is the baseline.
const (
	soakLanes  = 3
	killAfter  = 8 * time.Second // minimum
	killWithin = 16 * time.Second
	soakBegins = 10 // one tenth of the time; by then everything that is made once is there
	// All lanes pause together now and then, because standbys are started only while no
	// request is served.
	restEvery = 15 * time.Second
	restFor   = 3 * time.Second
)

// soak is one run of sessions on one daemon.
type soak struct {
	h     *host
	kills atomic.Int64

	mu     sync.Mutex
	counts map[string]int // sessions by restore path and by save mode
}

// runSoak creates and ends sessions for a time while it kills Chromes, and writes the
// soak's section of the page. Then it restores in a row, count times. It fails if a restored
// session is not logged in, or if something is left over.
func (b *bench) runSoak(ctx context.Context, total time.Duration, count int) error {
	h := b.ours
	s := &soak{h: h, counts: map[string]int{}}
	for n := range soakLanes {
		if err := h.Call(ctx, http.MethodPatch, "/v1/users/"+laneUser(n), obj{"standby": 1}, nil); err != nil {
			return err
		}
	}
	first := total / soakBegins
	if err := s.runLanes(ctx, b.seed, first); err != nil {
		return err
	}
	before, err := h.asBefore(ctx, nil)
	if err != nil {
		return err
	}
	s.counts = map[string]int{}
	s.kills.Store(0)
	if err := s.runLanes(ctx, b.seed+1, total-first); err != nil {
		return err
	}
	after, err := h.asBefore(ctx, &before)
	if err != nil {
		return err
	}
	running, err := h.Goroutines()
	if err != nil {
		return err
	}
	result := s.section(total, before, after, running)
	if err := errors.Join(leaks(before, after), tooMany(running)); err != nil {
		fmt.Print(result.markdown())
		return err
	}
	inARow, err := b.restoreInARow(ctx, count)
	result.rows = append(result.rows, inARow...)
	fmt.Print(result.markdown())
	if err != nil {
		return err
	}
	return replaceSection(filepath.Join(b.folder, pageFile), result)
}

// tooMany returns an error if an idle daemon has too many goroutines.
func tooMany(running int) error {
	if running == 0 || running > mostGoroutines {
		return fmt.Errorf("%d goroutines, want some and at most %d", running, mostGoroutines)
	}
	return nil
}

// section returns the result as a section of the page.
func (s *soak) section(total time.Duration, before, after resources, running int) section {
	rows := [][]string{{"Chromes killed", fmt.Sprint(s.kills.Load())}}
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		rows = append(rows, []string{what, fmt.Sprint(s.counts[what])})
	}
	change := func(of func(resources) int) string { return fmt.Sprintf("%d → %d", of(before), of(after)) }
	rows = append(rows,
		[]string{"the daemon's memory, MB", change(func(h resources) int { return int(h.rss >> 20) })},
		[]string{"its open files and sockets", change(func(h resources) int { return h.files })},
		[]string{"its goroutines at the end", fmt.Sprint(running)},
		[]string{"Chromes, all spares", change(func(h resources) int { return h.chromes })},
		[]string{"orphan processes", change(func(h resources) int { return h.orphans })},
		[]string{"folders of sessions and spares", change(func(h resources) int { return h.runs })},
		[]string{"archives", change(func(h resources) int { return h.stored })},
	)
	return section{
		title: soakTitle,
		text: fmt.Sprintf("`make soak` on %s, %s: %d callers create sessions by every restore path and end them with every save mode, while\n"+
			"Chromes are killed at random. Every restored session was logged in. An arrow goes from the end of the first tenth of\n"+
			"the time to the end of the soak.",
			time.Now().UTC().Format(time.DateOnly), total, soakLanes),
		head: []string{"", ""},
		rows: rows,
	}
}

// laneUser is the user of a lane's sessions. A standby is kept for its default.
func laneUser(n int) string { return fmt.Sprint("lane", n) }

// runLanes runs the lanes and kills Chromes for a time, and then ends all sessions.
func (s *soak) runLanes(ctx context.Context, seed uint64, total time.Duration) error {
	begin := time.Now()
	end := begin.Add(total)
	group, inGroup := errgroup.WithContext(ctx)
	for n := range soakLanes {
		l := &lane{soak: s, user: laneUser(n), random: rand.New(rand.NewPCG(seed, uint64(n)))}
		group.Go(func() error {
			for time.Now().Before(end) {
				time.Sleep(restFor - time.Since(begin)%restEvery) // mostly zero or less, which is no pause
				if err := l.runSession(inGroup); err != nil {
					return fmt.Errorf("%s: %w", l.user, err)
				}
			}
			return l.clear(inGroup)
		})
	}
	stop := make(chan struct{})
	killer := make(chan error, 1)
	go func() { killer <- s.killSome(rand.New(rand.NewPCG(seed, soakLanes)), stop) }()
	err := group.Wait()
	close(stop)
	return errors.Join(err, <-killer)
}

// killSome kills a Chrome of the daemon now and then, whatever its use.
func (s *soak) killSome(random *rand.Rand, stop <-chan struct{}) error {
	for {
		wait := killAfter + time.Duration(random.Int64N(int64(killWithin-killAfter)))
		select {
		case <-time.After(wait):
		case <-stop:
			return nil
		}
		mains := s.h.chromes().mains()
		if len(mains) == 0 {
			continue
		}
		s.kills.Add(1) // counted first: from now on a session may fail because of it
		if err := syscall.Kill(mains[random.IntN(len(mains))], syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
}

func (s *soak) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}
