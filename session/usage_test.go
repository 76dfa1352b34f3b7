package session

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
)

// examine returns what a session of alice uses.
func (r *rig) examine(id string) *answer.Usage {
	r.t.Helper()
	info, err := r.Examine(r.t.Context(), alice, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return info.Usage
}

// measures awaits that a session of alice uses memory, and returns what it uses. On a busy machine a
// measurement takes longer than Examine waits for it.
func (r *rig) measures(id string, memory int64) (u *answer.Usage) {
	r.t.Helper()
	await(r.t, "the memory is measured", func() bool {
		u = r.examine(id)
		return u.MemoryBytes == memory
	})
	return u
}

// A live session says how many clients and viewers it has and what its Chrome's memory is. The
// memory is measured when somebody asks, at most every 30 seconds.
func TestUsage(t *testing.T) {
	r := newRig(t, nil)
	var measured atomic.Int32
	r.browsers.on("memory", func(c *fakeChrome) error {
		c.memory = 100 << 20 * int64(measured.Add(1))
		return nil
	})
	made := r.create(alice, nil)
	if u := made.Usage; u == nil || *u != (answer.Usage{}) || measured.Load() != 0 {
		t.Errorf("new: %+v", u)
	}
	for range 2 {
		if u := r.measures(made.ID, 100<<20); u.MeasuredAt == nil || measured.Load() != 1 {
			t.Errorf("measured: %+v", u)
		}
	}
	leave := r.attach(made.ID)
	ctx, cancel := context.WithCancel(t.Context())
	v, served := newViewer(), make(chan error, 1)
	go func() { served <- r.View(ctx, alice, made.ID, v) }()
	<-v.said
	r.clock.add(memoryAge)
	if u := r.measures(made.ID, 200<<20); u.Clients != 1 || u.Viewers != 1 {
		t.Errorf("used: %+v", u)
	}
	leave()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	r.clock.add(memoryAge)
	list := func() *answer.Usage {
		page, _, err := r.List(t.Context(), alice, request.List{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		return page[0].Usage
	}
	list()
	await(t, "the list has measured", func() bool { return list().MemoryBytes == 300<<20 })
	r.end(alice, made.ID, none)
	if u := r.examine(made.ID); u != nil {
		t.Errorf("ended: %+v", u)
	}
}

// A paused session is measured and stays frozen. A Chrome that was started anew has no
// measurement of the old one.
func TestUsageOfPausedAndRestarted(t *testing.T) {
	r := newRig(t, nil)
	r.browsers.on("memory", func(c *fakeChrome) error {
		c.memory = 1 << 20
		return nil
	})
	id := r.create(alice, nil).ID
	if _, err := r.Pause(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	if u := r.measures(id, 1<<20); !r.browsers.last().Frozen() {
		t.Errorf("paused: %+v", u)
	}
	id = r.create(alice, onCrash).ID
	r.measures(id, 1<<20)
	r.crashChrome(id)
	info, err := r.Get(t.Context(), alice, id)
	if err != nil || info.Usage == nil || info.Usage.MemoryBytes != 0 {
		t.Errorf("restarted: %+v, %v", info.Usage, err)
	}
}
