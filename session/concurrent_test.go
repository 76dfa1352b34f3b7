package session

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
)

// on_live: what a create does if another live session came from the same environment.
func TestOnLive(t *testing.T) {
	r := newRig(t, nil)
	_, snap := r.saved(alice, asDefault)
	holder := r.create(alice, fromAlice).ID
	with := func(policy request.OnLive) func(*request.Create) {
		return func(c *request.Create) { fromAlice(c); c.OnLive = policy }
	}
	t.Run("fork", func(t *testing.T) {
		for _, policy := range []request.OnLive{"", request.OnLiveFork} {
			info := r.create(alice, with(policy))
			if info.ID == holder || info.Existing {
				t.Errorf("%q: %+v", policy, info)
			}
			r.end(alice, info.ID, none)
		}
	})
	t.Run("share", func(t *testing.T) {
		info := r.create(alice, with(request.OnLiveShare))
		if info.ID != holder || !info.Existing || info.Tickets[access.PurposeCDP] == "" {
			t.Errorf("%+v", info)
		}
		// The snapshot that the default names is the same environment.
		if info := r.create(alice, func(c *request.Create) { c.FromEnvironment, c.OnLive = snap, request.OnLiveShare }); info.ID != holder {
			t.Errorf("named by its snapshot: %s", info.ID)
		}
	})
	t.Run("share with another proxy", func(t *testing.T) {
		_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) {
			with(request.OnLiveShare)(c)
			c.Overrides, c.Extensions = behindProxy, []string{"none"}
		}))
		wantCode(t, err, fault.EnvironmentInUse)
		for _, name := range []string{holder, "proxy", "timezone", "extension none"} {
			if !strings.Contains(fault.MessageOf(err), name) {
				t.Errorf("%s is not named: %v", name, err)
			}
		}
	})
	t.Run("fail", func(t *testing.T) {
		for _, ask := range []func(*request.Create){with(request.OnLiveFail), func(c *request.Create) { fromAlice(c); c.Persist = true }, with(request.OnLiveWait)} {
			_, err := r.Create(t.Context(), alice, newCreate(ask))
			wantCode(t, err, fault.EnvironmentInUse)
			if !strings.Contains(fault.MessageOf(err), holder) {
				t.Errorf("the error does not name the holder: %v", err)
			}
		}
	})
	t.Run("a fresh session has no holder", func(t *testing.T) {
		info := r.create(alice, func(c *request.Create) { c.OnLive = request.OnLiveFail })
		r.end(alice, info.ID, none)
	})
	t.Run("wait ends without a slot", func(t *testing.T) {
		_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { with(request.OnLiveWait)(c); c.Wait = 5 * time.Millisecond }))
		wantCode(t, err, fault.EnvironmentInUse)
	})
	t.Run("wait", func(t *testing.T) {
		// Creating counts the create before it waits for the holder. The holder's end
		// lets it through in either case.
		got := make(chan answer.Info, 1)
		go func() {
			info, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { with(request.OnLiveWait)(c); c.Wait = time.Minute }))
			if err != nil {
				t.Error(err)
			}
			got <- info
		}()
		await(t, "the create is under way", func() bool { return r.sessions.Counts().Creating == 1 })
		r.end(alice, holder, none)
		info := <-got
		if info.ID == holder || info.Restored == nil {
			t.Errorf("%+v", info)
		}
		r.end(alice, info.ID, none)
	})
}

// Of concurrent creates with on_live fail, one gets the environment.
func TestConcurrentOnLiveFail(t *testing.T) {
	r := newRig(t, nil)
	r.saved(alice, asDefault)
	var group sync.WaitGroup
	var mu sync.Mutex
	var made, refused int
	for range 5 {
		group.Go(func() {
			_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { fromAlice(c); c.OnLive = request.OnLiveFail }))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made++
			case fault.Is(err, fault.EnvironmentInUse):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made != 1 || refused != 4 {
		t.Errorf("%d made, %d refused", made, refused)
	}
}

// A repeated session_id with the same body returns the session that it made. With another
// body, another key or a day later, the ID is taken.
func TestRepeatedSessionID(t *testing.T) {
	r := newRig(t, nil)
	mine := func(c *request.Create) { c.SessionID, c.RequestHash = "mine", "h1" }
	first := r.create(alice, mine)
	again := r.create(alice, mine)
	if again.ID != first.ID || !again.Existing || again.Tickets[access.PurposeCDP] != first.Tickets[access.PurposeCDP] || len(r.browsers.all()) != 1 {
		t.Errorf("again: %+v", again)
	}
	taken := func(c access.Caller, ask func(*request.Create)) {
		t.Helper()
		_, err := r.Create(t.Context(), c, newCreate(ask))
		wantCode(t, err, fault.SessionExists)
	}
	taken(alice, func(c *request.Create) { mine(c); c.RequestHash = "h2" })
	taken(bob, mine)
	snap := r.end(alice, "mine", filesystem).Snapshot.ID
	if ended := r.create(alice, mine); !ended.Existing || !ended.Status.Ended() {
		t.Errorf("after its end: %+v", ended)
	}
	r.clock.add(25 * time.Hour)
	taken(alice, mine)
	r.wantSnapshots(snap)
}

// Two concurrent creates of one ID make one session.
func TestConcurrentSessionID(t *testing.T) {
	r := newRig(t, nil)
	under, proceed := make(chan struct{}), make(chan struct{})
	r.browsers.on("fresh", func(*fakeChrome) error { close(under); <-proceed; return nil })
	mine := newCreate(func(c *request.Create) { c.SessionID, c.RequestHash = "mine", "h1" })
	made := make(chan error, 1)
	go func() { _, err := r.Create(t.Context(), alice, mine); made <- err }()
	<-under
	_, err := r.Create(t.Context(), alice, mine)
	wantCode(t, err, fault.RequestInProgress)
	_, err = r.Create(t.Context(), bob, mine) // another key learns nothing of the create
	wantCode(t, err, fault.SessionExists)
	close(proceed)
	if err := <-made; err != nil {
		t.Error(err)
	}
	if n := len(r.browsers.all()); n != 1 {
		t.Errorf("%d Chromes", n)
	}
}
