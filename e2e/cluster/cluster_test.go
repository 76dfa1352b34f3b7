package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/e2e/nodes"
	"github.com/stasisd/stasis/snapshot/storetest"
)

func TestMain(m *testing.M) {
	if os.Geteuid() == 0 && storetest.Long() {
		if err := nodes.Enter(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	daemon.CleanUp()
	os.Exit(code)
}

// long returns the settings of a run. make test does without it: the waits for leases to end make
// it long.
func long(t *testing.T) settings {
	t.Helper()
	if !storetest.Long() {
		t.Skip("make test-long runs it")
	}
	if os.Geteuid() != 0 {
		t.Fatal("only root can make network namespaces: run make test-long as root")
	}
	return settings{binary: daemon.Binary(t), clients: filepath.Join("..", "clients"), seed: 1, restore: 1, fault: 30 * time.Second, restart: 5 * time.Second}
}

// A session continues on a second node when its node dies, and on a third one when that drains.
func TestStory(t *testing.T) {
	if err := long(t).runStory(t.Context()); err != nil {
		t.Error(err)
	}
}

// Each part of a cluster fails once under load.
func TestTorture(t *testing.T) {
	s := long(t)
	s.rounds = len(faults)
	report, err := torture(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.failed(); err != nil {
		t.Errorf("%v\n%s", err, report.page())
	}
	if len(report.rounds) != s.rounds || report.saves == 0 {
		t.Errorf("%d rounds, %d saves", len(report.rounds), report.saves)
	}
}

// All nodes are replaced under load. No session and no save is lost, and no call fails.
func TestUpgrade(t *testing.T) {
	s := long(t)
	s.upgrades, s.next = 1, daemon.BinaryOf(t, "next")
	found, err := rolls(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := found.failedRun(); err != nil {
		t.Errorf("%v\n%s", err, found.page())
	}
	if found.upgrades != 1 || found.counts.saves == 0 || found.moves == 0 || found.restarted == 0 || found.passed == 0 {
		t.Errorf("nothing was tried: %s", found)
	}
}

// The page of upgrades has every count, and what was found.
func TestUpgradePage(t *testing.T) {
	r := upgraded{upgrades: 2, stops: []time.Duration{3 * time.Second}, starts: []time.Duration{time.Second}, calls: 9, commands: 8, restarted: 7, stayed: 6, passed: 5, moves: 4,
		counts: counts{saves: 30, restored: 2}, failed: []string{"GET /: 502"}}
	page := r.page()
	for _, want := range []string{"| after 2 upgrades |", "| 1 | 9 calls, 8 CDP commands, 5 sessions that", "| 0 | 6 that lived", "| 0 | 30, of which 2 were", "nodes | 4 |", "again | 7 |", "| 3.0, 3.0 |", "- GET /: 502"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if r.failedRun() == nil {
		t.Error("a run with a failed call has not failed")
	}
}

// A session must have what its client did last. Only a visit without an answer may be missing.
func TestStays(t *testing.T) {
	for _, c := range []struct {
		visits       int
		visited      bool
		cookie, page string
		ok           bool
	}{
		{7, true, "7", "?visit=7 1", true}, {7, true, "6", "?visit=7 1", false}, {7, true, "7", "?visit=6 1", false}, {7, true, "7", "?visit=7 7", false},
		{7, false, "6", "?visit=6 1", true}, {7, false, "7", "?visit=6 1", true}, {7, false, "5", "?visit=6 1", false}, {7, true, "", "", false},
	} {
		s := &stayer{guest: &guest{id: "s"}, visits: c.visits, visited: c.visited}
		if err := s.differs(c.cookie, c.page); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Each kind of fault is made as often as the others.
func TestPlan(t *testing.T) {
	plan, err := settings{rounds: 2 * len(faults)}.plan(rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, f := range plan {
		count[f.name]++
	}
	for _, f := range faults {
		if count[f.name] != 2 {
			t.Errorf("%s is made %d times, want 2", f.name, count[f.name])
		}
	}
	if _, err := (settings{kinds: "kill,flood"}).plan(nil); err == nil {
		t.Error("an unknown fault is taken")
	}
}

// The page has every count, and what was found.
func TestPage(t *testing.T) {
	r := report{settings: settings{fault: 30 * time.Second}, rounds: []*round{
		{kind: "kill", victim: "a", on: map[string]bool{"kept-0": true}, resumable: map[string]time.Duration{"kept-0": 15 * time.Second}, counts: counts{saves: 7, moves: 9, lost: 1}, found: []string{"lost: a snapshot"}},
		{kind: "stop", victim: "b"},
	}}
	page := r.page()
	for _, want := range []string{"| after 2 faults |", "| 1 | 7, of which", "| kill | 1 | 1 | 1 | 15.0 | 15.0 | 15.0 |", "| stop | 1 | 0 | 0 | – | – | – |", "- kill a: lost: a snapshot"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if r.failed() == nil {
		t.Error("a run that has lost a snapshot has not failed")
	}
}

// A snapshot must have the visit of its save or, of a session that continues, a later one.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		saved, has string
		ok         bool
	}{{"7", "7", true}, {"7", "8", true}, {"7", "6", false}, {"7", "", false}, {"short-0-1", "short-0-1", true}, {"short-0-1", "short-0-2", false}, {"", "5", true}} {
		if err := (saved{cookie: c.saved}).compare(c.has); (err == nil) != c.ok {
			t.Errorf("saved with %q, has %q: %v", c.saved, c.has, err)
		}
	}
}
