package session

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
)

// A create that waits gets the slot of the session that ends. A create that does not
// wait, or whose client disconnects, does not.
func TestCreateWaitsForASlot(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxSessions = 1 })
	first := r.create(alice, nil).ID
	_, err := r.Create(t.Context(), alice, newCreate(nil))
	wantCode(t, err, fault.TooManySessions)
	_, err = r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.Wait = time.Millisecond }))
	wantCode(t, err, fault.TooManySessions)

	hangUp, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := r.Create(hangUp, alice, newCreate(func(c *request.Create) { c.Wait = time.Minute }))
		left <- err
	}()
	await(t, "a create waits", func() bool { return r.capacity.Counts().Waiting == 1 })
	cancel()
	wantCode(t, <-left, fault.TooManySessions)

	got := make(chan answer.Info, 1)
	go func() {
		info, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.Wait = time.Minute }))
		if err != nil {
			t.Error(err)
		}
		got <- info
	}()
	await(t, "a create waits", func() bool { return r.capacity.Counts().Waiting == 1 })
	r.end(alice, first, none)
	second := <-got
	r.end(alice, second.ID, none)
	if n := r.Counts().Live; n != 0 {
		t.Errorf("%d live", n)
	}
}

// A create that fails frees its slot and leaves nothing behind.
func TestCreateFails(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxSessions = 1 })
	_, snap := r.saved(alice, asDefault)
	storeFull := fault.New(fault.StoreFull, "fake", "no space")
	for name, test := range map[string]struct {
		damage func()
		ask    func(*request.Create)
		code   fault.Code
	}{
		"no directory":     {func() { r.browsers.fails(storeFull, "dir") }, nil, fault.StoreFull},
		"no Chrome":        {func() { r.browsers.fails(fault.New(fault.BrowserFailed, "", ""), "fresh") }, nil, fault.BrowserFailed},
		"no restore":       {func() { r.browsers.fails(fault.New(fault.BrowserFailed, "", ""), "restored") }, fromAlice, fault.BrowserFailed},
		"no record":        {func() { r.catalogue.fails(storeFull, "CreateSession") }, nil, fault.StoreFull},
		"no record of one": {func() { r.catalogue.fails(storeFull, "CreateSession") }, fromAlice, fault.StoreFull},
		"no archive":       {func() { r.store.FailAt(1, 2, fault.New(fault.StoreFailed, "", "")) }, fromAlice, fault.StoreFailed},
	} {
		t.Run(name, func(t *testing.T) {
			test.damage()
			id := "chosen-" + snap[30:]
			_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) {
				c.SessionID = id
				if test.ask != nil {
					test.ask(c)
				}
			}))
			wantCode(t, err, test.code)
			r.browsers.works()
			r.catalogue.works()
			r.store.FailAt(0, 0, nil)
			if n := r.dirs(); n != 0 {
				t.Errorf("%d run directories are left", n)
			}
			for _, c := range r.browsers.all() {
				if !c.dead() {
					t.Error("a Chrome still runs")
				}
			}
			_, err = r.Get(t.Context(), alice, id)
			wantCode(t, err, fault.SessionNotFound)
		})
	}
	r.wantSnapshots(snap)
	// The slot is free again.
	r.end(alice, r.create(alice, fromAlice).ID, none)
}

func fromAlice(c *request.Create) { c.FromDefaultOf = "alice" }
