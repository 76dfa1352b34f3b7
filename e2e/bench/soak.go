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

// How the soak goes: so many lives beside each other, a Chrome killed between
// two moments, and what runs before is counted against what runs after the
// first part of it.
const (
	soakLanes  = 3
	killAfter  = 8 * time.Second // at the least
	killWithin = 16 * time.Second
	soakBegins = 10 // the first tenth is for what is made once
	// All lanes rest together now and then: Chromes come to stand by only while
	// nobody is served.
	restEvery = 15 * time.Second
	restFor   = 3 * time.Second
)

// soak is one run of lives, all on one daemon.
type soak struct {
	h     *host
	kills atomic.Int64

	mu     sync.Mutex
	counts map[string]int // lives, by how they came up and how they ended
}

// soaked lets sessions live for a time in every way, kills Chromes meanwhile,
// and writes its section of the note. It fails where a restore is not logged
// in, or where something is left.
func (b *bench) soaked(ctx context.Context, total time.Duration) error {
	h := b.ours
	s := &soak{h: h, counts: map[string]int{}}
	for n := range soakLanes {
		if err := h.Call(ctx, http.MethodPatch, "/v1/users/"+laneUser(n), obj{"standby": 1}, nil); err != nil {
			return err
		}
	}
	first := total / soakBegins
	if err := s.lives(ctx, b.seed, first); err != nil {
		return err
	}
	before, err := h.asBefore(ctx, nil)
	if err != nil {
		return err
	}
	s.counts = map[string]int{}
	s.kills.Store(0)
	if err := s.lives(ctx, b.seed+1, total-first); err != nil {
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
	seen := s.section(total, before, after, running)
	fmt.Print(seen.markdown())
	if err := errors.Join(left(before, after), tooMany(running)); err != nil {
		return err
	}
	return keepSoak(filepath.Join(b.folder, noteFile), seen)
}

// tooMany tells of goroutines that a daemon at rest does not have.
func tooMany(running int) error {
	if running == 0 || running > mostGoroutines {
		return fmt.Errorf("%d goroutines, want some and at most %d", running, mostGoroutines)
	}
	return nil
}

// section tells how it went.
func (s *soak) section(total time.Duration, before, after held, running int) section {
	rows := [][]string{{"Chromes killed", fmt.Sprint(s.kills.Load())}}
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		rows = append(rows, []string{what, fmt.Sprint(s.counts[what])})
	}
	change := func(of func(held) int) string { return fmt.Sprintf("%d → %d", of(before), of(after)) }
	rows = append(rows,
		[]string{"the daemon's memory, MB", change(func(h held) int { return int(h.rss >> 20) })},
		[]string{"its open files and sockets", change(func(h held) int { return h.files })},
		[]string{"its goroutines at the end", fmt.Sprint(running)},
		[]string{"Chromes, all of them spares", change(func(h held) int { return h.chromes })},
		[]string{"processes that nobody owns", change(func(h held) int { return h.strays })},
		[]string{"folders of sessions and spares", change(func(h held) int { return h.runs })},
		[]string{"archives", change(func(h held) int { return h.stored })},
	)
	return section{
		title: soakTitle,
		text: fmt.Sprintf("`make soak` on %s, %s: %d callers make sessions in every way, use and end them in every way, while Chromes are killed\n"+
			"at random. Every session that came back was logged in. What is held is from after the first tenth of the time to the end.",
			time.Now().UTC().Format(time.DateOnly), total, soakLanes),
		head: []string{"", ""},
		rows: rows,
	}
}

// laneUser is whose sessions a lane makes. Its default stands by.
func laneUser(n int) string { return fmt.Sprint("lane", n) }

// lives runs the lanes, and the killer beside them, for a time, and then ends
// all sessions.
func (s *soak) lives(ctx context.Context, seed uint64, total time.Duration) error {
	begin := time.Now()
	end := begin.Add(total)
	group, inGroup := errgroup.WithContext(ctx)
	for n := range soakLanes {
		l := &lane{soak: s, user: laneUser(n), random: rand.New(rand.NewPCG(seed, uint64(n)))}
		group.Go(func() error {
			for time.Now().Before(end) {
				time.Sleep(restFor - time.Since(begin)%restEvery) // not at all, mostly
				if err := l.life(inGroup); err != nil {
					return fmt.Errorf("%s: %w", l.user, err)
				}
			}
			return l.clear(inGroup)
		})
	}
	stop := make(chan struct{})
	killed := make(chan error, 1)
	go func() { killed <- s.killSome(rand.New(rand.NewPCG(seed, soakLanes)), stop) }()
	err := group.Wait()
	close(stop)
	return errors.Join(err, <-killed)
}

// killSome kills a Chrome of the daemon now and then, whatever it is for.
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
		s.kills.Add(1) // before: what fails from now on may fail for it
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
