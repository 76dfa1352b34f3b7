package quota

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
)

func ptr(n int64) *int64 { return &n }

// A user's quotas replace the daemon's one by one.
func TestQuotas(t *testing.T) {
	var q Quotas
	for _, name := range Names() {
		if q.Of(name) != nil || !q.Set(name, 7) || *q.Of(name) != 7 {
			t.Errorf("%s: %v", name, q.Of(name))
		}
		if q.Set(name, -1) || q.Set(name, Largest(name)+1) || *q.Of(name) != 7 {
			t.Errorf("%s is %d", name, *q.Of(name))
		}
	}
	if q.Set("cookies", 1) || q.Set(Sessions, 0) || !q.Set(Parked, 0) {
		t.Error("wrong values are taken")
	}
	got := Quotas{Sessions: ptr(1)}.Or(q)
	if *got.Sessions != 1 || *got.Parked != 0 || *got.Bytes != 7 {
		t.Errorf("%+v", got)
	}
}

// The error counts in words that are right for one, and its advice helps with what was refused.
func TestLimitError(t *testing.T) {
	limits := func(name Name, most int64, ofSave bool) Limit {
		return Limit{Share: Share{Holder{User, "ada"}, name}, Most: &most, OfSave: ofSave}
	}
	for _, tt := range []struct {
		limit Limit
		n     int64
		want  string
	}{
		{limits(Imports, 1, false), 1, "quotas.imports: the user has 1 running import, and its limit is 1; try again when one has ended"},
		{limits(Sessions, 2, false), 2, "quotas.sessions: the user has 2 live sessions, and its limit is 2; end one, or wait with wait_seconds"},
		{limits(Bytes, 9, false), 12, "quotas.bytes: the user has 12 stored bytes, and its limit is 9; delete snapshots, or create the session with read_only"},
		{limits(Bytes, 9, true), 12, "quotas.bytes: the user has 12 stored bytes, and its limit is 9; delete snapshots"},
		{limits(Snapshots, 1, true), 1, "quotas.snapshots: the user has 1 snapshot or live session that may be saved, and its limit is 1; delete snapshots or end sessions"},
	} {
		if got := fault.MessageOf(tt.limit.Error("test", tt.n)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// Of 50 calls at once as many are counted as both limits allow, and released ones leave
// nothing.
func TestCounter(t *testing.T) {
	var c Counter
	limits := Limits(Sockets, "alice", Quotas{Sockets: ptr(3)}, "key", Quotas{Sockets: ptr(2)})
	releases := make(chan func(), 50)
	var refused atomic.Int32
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			release, err := c.Take("test", limits)
			if err == nil {
				releases <- release
				return
			}
			refused.Add(1)
			var e Exceeded
			if !fault.Is(err, fault.QuotaExceeded) || !errors.As(err, &e) || e != (Exceeded{Sockets, 2, Key, "key"}) {
				t.Errorf("error %v of %+v", err, e)
			}
		})
	}
	calls.Wait()
	close(releases)
	if n := len(releases); n != 2 || refused.Load() != 48 || c.Held(limits[0].Share) != 2 || c.Held(limits[1].Share) != 2 {
		t.Errorf("%d are counted", n)
	}
	for release := range releases {
		release()
	}
	if len(c.held) > 0 {
		t.Errorf("it remembers %v", c.held)
	}
}

// A holder may make as many requests in a second as its quota says. A request that one limit
// refuses does not count for the other.
func TestRates(t *testing.T) {
	r := NewRates()
	now := time.Unix(1_800_000_000, 0)
	limits := Limits(Requests, "alice", Quotas{Requests: ptr(4)}, "key", Quotas{Requests: ptr(2)})
	for i, want := range []int64{1, 0} {
		states, err := r.Take(now, limits)
		if err != nil || len(states) != 2 || states[1].Left != want || states[0].Left != want+2 {
			t.Errorf("request %d: %+v, %v", i, states, err)
		}
	}
	for range 50 {
		states, err := r.Take(now, limits)
		var e Exceeded
		if !errors.As(err, &e) || e != (Exceeded{Requests, 2, Key, "key"}) || states[0].Left != 2 || states[1].Left != 0 || states[1].Reset != time.Second {
			t.Fatalf("beyond the quota: %+v, %v", states, err)
		}
	}
	if used := r.Used(now, Holder{User, "alice"}); used != 2 {
		t.Errorf("the user has made %d requests", used)
	}
	if _, err := r.Take(now.Add(500*time.Millisecond), limits); err != nil {
		t.Errorf("half a second later: %v", err)
	}
	if states, err := r.Take(now, Limits(Requests, "bob", Quotas{}, "", Quotas{})); err != nil || len(states) > 0 {
		t.Errorf("without a quota: %+v, %v", states, err)
	}
	// A changed quota counts at once.
	limits[1].Most = ptr(100)
	if states, err := r.Take(now.Add(10*time.Second), limits); err != nil || states[1].Limit != 100 || states[1].Left > 100 {
		t.Errorf("with a larger quota: %+v, %v", states, err)
	}
}

// Users come and go: only those of the last second are remembered.
func TestRatesForgets(t *testing.T) {
	r := NewRates()
	now := time.Unix(1_800_000_000, 0)
	for i := range 100 * minSweep {
		now = now.Add(10 * time.Millisecond)
		if _, err := r.Take(now, Limits(Requests, fmt.Sprint(i), Quotas{Requests: ptr(1)}, "", Quotas{})); err != nil {
			t.Fatal(err)
		}
		if len(r.known) > minSweep {
			t.Fatalf("%d limiters are kept", len(r.known))
		}
	}
}
