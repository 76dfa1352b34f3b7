package cluster_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/cluster"
	"github.com/stasisd/stasis/session/placement"
)

// lease is short, so that the tests are.
const lease = 300 * time.Millisecond

// store is a catalogue with one other node.
type store struct {
	profiles.NodeStore
	mu      sync.Mutex
	number  int64
	renew   error
	ahead   time.Duration // of the clock of the catalogue
	other   profiles.Node
	taken   []string
	failed  int // renewals
	looks   int
	renewed int
	inUse   int // joins that find a lease of another process; negative: all
	calls   []string

	draining bool
	status   string
}

func (s *store) call(name string) {
	s.calls = append(s.calls, name)
}

func (s *store) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *store) Join(_ context.Context, n profiles.Node) (profiles.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.call("join")
	if s.inUse != 0 {
		s.inUse--
		return n, fault.New(fault.NodeInUse, "test", "the daemon at x is node a")
	}
	s.number += 2
	s.renew, s.draining, n.Number, n.Clock = nil, false, s.number, time.Now().Add(s.ahead)
	return n, nil
}

func (s *store) Renew(_ context.Context, status json.RawMessage) (profiles.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = string(status)
	s.renewed++
	if s.renew != nil {
		s.failed++
	}
	return profiles.Node{ID: "a", Number: s.number, Draining: s.draining, Clock: time.Now().Add(s.ahead)}, s.renew
}

func (s *store) Drain(_ context.Context, _ string, on bool) error {
	s.set(func() { s.draining = on; s.call("drain") })
	return s.renew
}

func (s *store) Leave(context.Context) error {
	s.set(func() { s.call("leave") })
	return nil
}

func (s *store) Nodes(context.Context) ([]profiles.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return []profiles.Node{{ID: "a", Number: s.number, Left: lease}, s.other}, nil
}

func (s *store) TakeOver(_ context.Context, id string, _ int64) (bool, error) {
	s.set(func() { s.taken = append(s.taken, id); s.other.Number = 0 })
	return true, nil
}

func (s *store) Stranded(context.Context) ([]profiles.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.taken) == 0 {
		return nil, nil
	}
	return []profiles.Session{{ID: "s1"}}, nil
}

// sessions records what a keeper does with sessions.
type sessions struct {
	s     *store
	ended atomic.Int64
	moved atomic.Int64

	restarted atomic.Int64
}

func (f *sessions) Status() placement.Status { return placement.Status{Free: 1} }
func (f *sessions) Lose(context.Context)     { f.s.set(func() { f.s.call("lose") }) }
func (f *sessions) Regain(context.Context)   { f.s.set(func() { f.s.call("regain") }) }
func (f *sessions) TakeOver(context.Context, []profiles.Session) error {
	f.ended.Add(1)
	return nil
}
func (f *sessions) Restart(context.Context) error {
	f.restarted.Add(1)
	return nil
}
func (f *sessions) Move(context.Context) { f.moved.Add(1) }

func join(t *testing.T, s *store, extend func(time.Duration)) (*cluster.Keeper, error) {
	began := time.Now()
	return cluster.Join(t.Context(), cluster.Config{Store: s, ID: "a", Extend: extend, Lease: lease,
		Clock: func() time.Duration { return time.Since(began) + time.Hour }, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
}

func keep(t *testing.T, s *store, extend func(time.Duration)) (*cluster.Keeper, *sessions) {
	t.Helper()
	k, err := join(t, s, extend)
	if err != nil {
		t.Fatal(err)
	}
	f := &sessions{s: s}
	k.Begin(f)
	t.Cleanup(func() {
		if err := k.Close(context.Background(), true); err != nil {
			t.Error(err)
		}
	})
	return k, f
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited for: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// A node waits for the end of a lease that a daemon with its ID and another data directory has. If
// that is renewed, the error names the other.
func TestJoinWaits(t *testing.T) {
	k, _ := keep(t, &store{inUse: 2}, func(time.Duration) {})
	await(t, "the lease is held", func() bool { return k.Check() == nil })
	s, began := &store{inUse: -1}, time.Now()
	_, err := join(t, s, func(time.Duration) {})
	if !fault.Is(err, fault.Config) || fault.MessageOf(err) != "the daemon at x is node a" {
		t.Errorf("got %v, want config", err)
	}
	if early := lease - time.Since(began); early > 0 || len(s.calls) < 2 {
		t.Errorf("refused %v early, after %d attempts", early, len(s.calls))
	}
}

// A node that cannot renew its lease takes no calls, and continues when it can again. Its deadline
// moves only with renewals.
func TestLapse(t *testing.T) {
	s := &store{}
	var until atomic.Int64
	k, _ := keep(t, s, func(d time.Duration) { until.Store(int64(d)) })
	await(t, "the lease is held", func() bool { return k.Check() == nil })
	s.set(func() { s.renew = fault.New(fault.CatalogueUnavailable, "test", "away") })
	await(t, "the lease lapses", func() bool { return k.State() == cluster.Lapsed })
	if err := k.Check(); !fault.Is(err, fault.CatalogueUnavailable) || k.Leads() {
		t.Errorf("checked: %v, leads %v", err, k.Leads())
	}
	last := until.Load()
	s.set(func() { s.renew = nil })
	await(t, "the lease is held", func() bool { return k.Check() == nil })
	if until.Load() <= last {
		t.Error("the deadline was not extended")
	}
	s.set(func() {
		if len(s.calls) != 1 {
			t.Errorf("calls %q", s.calls)
		}
	})
}

// A node that was taken over ends its sessions before it joins again, and then saves what they had.
func TestLost(t *testing.T) {
	s := &store{}
	k, _ := keep(t, s, func(time.Duration) {})
	s.set(func() { s.renew = fault.New(fault.NodeLost, "test", "") })
	var calls []string
	await(t, "the node joins again", func() bool {
		s.set(func() { calls = append([]string{}, s.calls...) })
		return len(calls) == 4 && k.Check() == nil
	})
	if calls[1] != "lose" || calls[2] != "join" || calls[3] != "regain" {
		t.Errorf("calls %q", calls)
	}
}

// A node takes another over only if the other's lease has ended, and after it has held its own
// for a whole lease.
func TestTakesOver(t *testing.T) {
	s := &store{other: profiles.Node{ID: "b", Number: 1, Left: -1}}
	began := time.Now()
	k, f := keep(t, s, func(time.Duration) {})
	await(t, "the sessions are ended", func() bool { return f.ended.Load() > 0 })
	if early := lease - time.Since(began); early > 0 {
		t.Errorf("taken over %v early", early)
	}
	await(t, "the node leads", k.Leads)
	s.set(func() { s.other = profiles.Node{ID: "b", Number: 1, Left: time.Hour} })
	await(t, "the other leads", func() bool { return !k.Leads() })
	s.set(func() {
		if len(s.taken) != 1 || s.taken[0] != "b" {
			t.Errorf("taken over: %q", s.taken)
		}
	})
}

// After a failed renewal, and after the catalogue's clock was moved, all other nodes have a whole
// lease to renew theirs.
func TestTakesOverLater(t *testing.T) {
	for name, happens := range map[string]func(*store, func(profiles.Node)){
		"a failed renewal": func(s *store, other func(profiles.Node)) {
			s.set(func() { s.renew = fault.New(fault.CatalogueUnavailable, "test", "away") })
			await(t, "a renewal fails", func() (failed bool) {
				s.set(func() { failed = s.failed > 0 })
				return failed
			})
			s.set(func() { s.renew = nil })
			other(profiles.Node{ID: "b", Number: 5, Left: -1})
		},
		"another clock": func(_ *store, other func(profiles.Node)) {
			other(profiles.Node{ID: "b", Number: 3, Left: -1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{other: profiles.Node{ID: "b", Number: 1, Left: -1}}
			keep(t, s, func(time.Duration) {})
			looks := func() (n int) {
				s.set(func() { n = s.looks })
				return n
			}
			taken := func(n int) {
				t.Helper()
				await(t, "the other is taken over", func() (is bool) {
					s.set(func() { is = len(s.taken) == n })
					return is
				})
			}
			taken(1) // from now on the node may take over others at once
			s.set(func() { s.other = profiles.Node{ID: "b", Number: 3, Left: time.Hour} })
			seen := looks() + 2
			await(t, "the node sees the other", func() bool { return looks() >= seen })
			began := time.Now()
			happens(s, func(n profiles.Node) { s.set(func() { s.other = n }) })
			taken(2)
			if early := lease - time.Since(began); early > 0 {
				t.Errorf("taken over %v early", early)
			}
		})
	}
}

// A node that is drained moves its sessions after each renewal, and starts none again. One that
// stops does so once, when it is asked to.
func TestDrained(t *testing.T) {
	s := &store{}
	k, f := keep(t, s, func(time.Duration) {})
	await(t, "sessions are started again", func() bool { return f.restarted.Load() > 0 })
	if n := f.moved.Load(); n != 0 {
		t.Errorf("moved %d times before the drain", n)
	}
	s.set(func() { s.draining = true })
	await(t, "sessions are moved twice", func() bool { return f.moved.Load() >= 2 })
	if !k.Draining() {
		t.Error("the node does not know that it is drained")
	}
	restarted := f.restarted.Load()
	await(t, "sessions are moved again", func() bool { return f.moved.Load() >= 4 })
	if n := f.restarted.Load() - restarted; n > 1 { // one had begun
		t.Errorf("sessions were started again %d times while it is drained", n)
	}
	s.set(func() { s.draining = false })
	await(t, "the drain ends", func() bool { return !k.Draining() })
	k.Leave(t.Context())
	moved := f.moved.Load()
	await(t, "the lease is renewed", func() bool { return k.Left() > 0 && k.Draining() })
	if n := f.moved.Load() - moved; n > 1 {
		t.Errorf("the keeper moved sessions %d times while its daemon stops", n)
	}
	s.set(func() {
		if len(s.calls) != 2 || s.calls[1] != "drain" {
			t.Errorf("calls %q", s.calls)
		}
	})
}

// A node that was drained stays so when it loses its lease and joins again.
func TestDrainedAndLost(t *testing.T) {
	s := &store{}
	k, _ := keep(t, s, func(time.Duration) {})
	s.set(func() { s.draining = true })
	await(t, "the node is drained", k.Draining)
	s.set(func() { s.renew = fault.New(fault.NodeLost, "test", "") })
	await(t, "the node has joined again", func() (joined bool) {
		s.set(func() { joined = s.number > 2 })
		return joined && k.Check() == nil
	})
	s.set(func() {
		if !s.draining {
			t.Error("other nodes do not know that it is drained")
		}
	})
	if !k.Draining() {
		t.Error("the node takes sessions again")
	}
}

// Others know at once how much room a node has that has started.
func TestFirstStatus(t *testing.T) {
	s := &store{}
	began := time.Now()
	k, err := cluster.Join(t.Context(), cluster.Config{Store: s, ID: "a", Extend: func(time.Duration) {}, Lease: time.Hour,
		Clock: func() time.Duration { return time.Since(began) }, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	k.Begin(&sessions{s: s})
	await(t, "the status is written", func() bool {
		var status string
		s.set(func() { status = s.status })
		return status != ""
	})
	if err := k.Close(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// A changed status is written before the time of the next renewal.
func TestChangedStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		began := time.Now()
		k, err := cluster.Join(t.Context(), cluster.Config{Store: s, ID: "a", Extend: func(time.Duration) {}, Lease: 15 * time.Second,
			Clock: func() time.Duration { return time.Since(began) }, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		k.Begin(&sessions{s: s})
		time.Sleep(time.Second)
		for range 3 {
			s.set(func() { s.renewed = 0 })
			for range 100 {
				k.Changed()
			}
			time.Sleep(1100 * time.Millisecond)
			s.set(func() {
				if s.renewed < 1 || s.renewed > 3 {
					t.Errorf("renewed %d times", s.renewed)
				}
			})
		}
		if err := k.Close(t.Context(), true); err != nil {
			t.Error(err)
		}
	})
}
