package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/stasisd/stasis/e2e/nodes"
)

const (
	// underLoad is how long the load runs before a fault, and again after it.
	underLoad = 4 * time.Second
	// settleDeadline is how long nodes and sessions may take to work again after a fault.
	settleDeadline = 3 * time.Minute
)

// run is a run of the torture.
type run struct {
	*nodes.Cluster
	settings settings
	random   *rand.Rand
	site     string
	kept     []string // the sessions that live for the whole run
	keepers  []*keeper
	shorts   []*short
	contest  *contest
	saves    *saves
	watch    *watch

	// Each step of the load holds it for reading; nothing runs while it is held for writing.
	gate sync.RWMutex

	mu  sync.Mutex
	now *round // the round with a fault that has begun; nil: none

	unanswered []string // calls that were not answered in time, since the last look
}

// round is a fault and what was counted after it.
type round struct {
	kind, victim string
	began        time.Time
	on           map[string]bool // the kept sessions that lived on the victim

	resumable map[string]time.Duration // the time from the fault until a session was used again, by session
	counts    counts
	found     []string // what is wrong, a line for each
}

// counts are what must be 0, and how much was looked at.
type counts struct {
	double, loser, lost, stuck, left int
	hung                             int // calls without an answer
	saves, restored, moves, kept     int
}

// report is what a run has found.
type report struct {
	settings settings
	rounds   []*round
	end      []string // what is wrong at the end
	checked  string   // what stasis store check says
	saves    int
	took     time.Duration
}

// newRun starts the nodes, the site and the watch of a run. stop ends them, and copies the nodes'
// logs.
func newRun(ctx context.Context, s settings) (r *run, stop func() error, err error) {
	c, err := s.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	end := func() error { return errors.Join(s.copyLogs(c), c.Close(context.WithoutCancel(ctx))) }
	site, closeSite, err := serve(c.Address(), http.HandlerFunc(visited))
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	r = &run{Cluster: c, settings: s, random: rand.New(rand.NewPCG(s.seed, 0)), site: site, saves: &saves{}}
	if r.watch, err = startWatch(ctx, c); err != nil {
		closeSite()
		return nil, nil, errors.Join(err, end())
	}
	return r, func() error {
		r.watch.stop()
		closeSite()
		return end()
	}, nil
}

// torture runs the rounds. The report is of as many as were done, also after an error.
func torture(ctx context.Context, s settings) (rep *report, err error) {
	r, stop, err := newRun(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	began := time.Now()
	rep = &report{settings: s}
	err = r.load(ctx, rep)
	rep.took, rep.saves = time.Since(began), len(r.saves.all)
	if err != nil {
		return rep, err
	}
	return rep, r.end(ctx, rep)
}

// load runs the load, and the rounds meanwhile.
func (r *run) load(ctx context.Context, rep *report) error {
	var err error
	if r.contest, err = newContest(ctx, r); err != nil {
		return err
	}
	for i := range keepersOfRun {
		id := fmt.Sprint("kept-", i)
		r.kept = append(r.kept, id)
		r.keepers = append(r.keepers, &keeper{run: r, id: id, restarts: i == 0})
	}
	for i := range shortsOfRun {
		r.shorts = append(r.shorts, &short{run: r, number: i})
	}
	loaded, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	for _, k := range r.keepers {
		work.Go(func() {
			r.use(loaded, keeperPause, k.step)
			k.disconnect()
		})
	}
	for _, s := range r.shorts {
		work.Go(func() { r.use(loaded, shortPause, s.step) })
	}
	for i, n := range r.Nodes {
		work.Go(func() { r.use(loaded, contestPause, func(ctx context.Context) { r.contest.step(ctx, i, n.Call) }) })
	}
	if err := r.settle(ctx, time.Now(), &round{}); err != nil {
		return err
	}
	kinds, err := r.settings.plan(r.random)
	if err != nil {
		return err
	}
	for i, kind := range kinds {
		one, err := r.round(ctx, kind)
		if one != nil {
			rep.rounds = append(rep.rounds, one)
			progress("round %d of %d: %s", i+1, len(kinds), one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// use repeats a step of the load.
func (r *run) use(ctx context.Context, pause time.Duration, step func(context.Context)) {
	for ctx.Err() == nil {
		r.gate.RLock()
		step(ctx)
		r.gate.RUnlock()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// round makes one fault under load, and then looks at everything without load.
func (r *run) round(ctx context.Context, kind fault) (*round, error) {
	if err := sleep(ctx, underLoad/2+time.Duration(r.random.Int64N(int64(underLoad)))); err != nil {
		return nil, err
	}
	victim, err := r.victim(ctx)
	if err != nil {
		return nil, err
	}
	one := &round{kind: kind.name, victim: victim.ID, resumable: map[string]time.Duration{}}
	if kind.whole {
		one.victim = ""
	}
	on, err := r.watch.livesOn(ctx, victim.ID)
	if err != nil {
		return nil, err
	}
	for id := range on {
		if !slices.Contains(r.kept, id) {
			delete(on, id)
		}
	}
	one.on = on
	r.mu.Lock()
	one.began = time.Now()
	r.now = one
	r.mu.Unlock()
	err = kind.do(ctx, r, victim)
	ended := time.Now()
	if err != nil {
		return one, fmt.Errorf("%s of node %s: %w", kind.name, victim.ID, err)
	}
	if err := r.settle(ctx, ended, one); err != nil {
		return one, err
	}
	if err := sleep(ctx, underLoad); err != nil {
		return one, err
	}
	r.gate.Lock()
	defer r.gate.Unlock()
	r.mu.Lock()
	r.now = nil
	r.mu.Unlock()
	return one, r.examine(ctx, one)
}

// victim returns the node of a random kept session, so that each fault concerns one.
func (r *run) victim(ctx context.Context) (*nodes.Node, error) {
	id := r.keepers[r.random.IntN(len(r.keepers))].id
	rows, err := r.watch.query(ctx, "SELECT node_id FROM sessions WHERE session_id = $1", id)
	if err == nil && len(rows) == 1 {
		if n := r.Node(rows[0][0]); n != nil {
			return n, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%s lives on no node", id), err)
}

// settle waits until all nodes are ready and all kept sessions were used since a time.
func (r *run) settle(ctx context.Context, since time.Time, one *round) error {
	within, cancel := context.WithTimeout(ctx, settleDeadline)
	defer cancel()
	for _, n := range r.Nodes {
		if err := wait(within, "node "+n.ID+" is not ready", func() bool { return n.Ready(within) }); err != nil {
			return err
		}
	}
	for _, k := range r.keepers {
		if err := wait(within, k.id, func() bool { return k.usedSince(since) }); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			one.counts.stuck++
			one.found = append(one.found, fmt.Sprintf("%s is not used again after %s: %v", k.id, settleDeadline, k.problem()))
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
