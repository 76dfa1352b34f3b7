package cluster_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/cluster"
)

// A node whose clock differs from the catalogue's does not join, and leaves no lease.
func TestJoinWithAWrongClock(t *testing.T) {
	for ahead, want := range map[time.Duration]fault.Code{
		-time.Minute: fault.Config, -8 * time.Second: fault.Config, time.Minute: fault.Config, -2 * time.Second: "", 2 * time.Second: "",
	} {
		s := &store{ahead: ahead}
		k, err := cluster.Join(t.Context(), cluster.Config{Store: s, ID: "a", Extend: func(time.Duration) {}, Lease: time.Hour,
			Clock: func() time.Duration { return time.Hour }, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if got := fault.CodeOf(err); got != want {
			t.Errorf("%s ahead: %v", ahead, err)
		}
		if left := slices.Contains(s.calls, "leave"); left != (want != "") {
			t.Errorf("%s ahead: calls %q", ahead, s.calls)
		}
		if k != nil {
			if err := k.Close(t.Context(), false); err != nil {
				t.Error(err)
			}
		}
	}
}

// A node whose clock becomes wrong keeps its lease, and does not lead until the clock is right.
func TestClockBecomesWrong(t *testing.T) {
	s := &store{}
	k, _ := keep(t, s, func(time.Duration) {})
	await(t, "the node leads", k.Leads)
	s.set(func() { s.ahead = time.Minute })
	await(t, "the node does not lead, with a lease", func() bool { return !k.Leads() && k.Check() == nil })
	s.set(func() { s.ahead = 0 })
	await(t, "the node leads again", k.Leads)
}
