package session

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/request"
)

// soon is a limit that a test waits for.
const soon = 20 * time.Millisecond

// client is a CDP client that does nothing until it disconnects.
type client struct{ leave chan struct{} }

func (c client) Read(ctx context.Context) ([]byte, error) {
	select {
	case <-c.leave:
	case <-ctx.Done():
	}
	return nil, errors.New("left")
}
func (c client) Write(context.Context, []byte) error { return nil }
func (c client) Close(int, string) error             { return nil }

// attach connects a client and waits until the session has it.
func (r *rig) attach(id string) (leave func()) {
	r.t.Helper()
	c, served := client{make(chan struct{})}, make(chan error, 1)
	go func() { served <- r.Connect(context.Background(), alice, id, Client{}, c) }()
	await(r.t, "the client is attached", func() bool { return r.status(id) == profiles.StatusRunning })
	return func() {
		close(c.leave)
		if err := <-served; err != nil {
			r.t.Error(err)
		}
	}
}

func (r *rig) ended(id string) profiles.Session {
	r.t.Helper()
	await(r.t, "the session ended", func() bool { return r.sessions.Find(id) == nil })
	rec, err := r.catalogue.Session(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return rec
}

// What the daemon ends is saved as a rescue, which expires and is never a default.
func TestTimeouts(t *testing.T) {
	for name, test := range map[string]struct {
		ask    func(*request.Create)
		reason profiles.ReasonCode
	}{
		"idle":     {func(c *request.Create) { c.Idle = soon }, profiles.ReasonIdle},
		"lifetime": {func(c *request.Create) { c.Lifetime = soon }, profiles.ReasonLifetime},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			_, old := r.saved(alice, asDefault)
			id := r.create(alice, func(c *request.Create) { fromAlice(c); test.ask(c) }).ID
			rec := r.ended(id)
			if rec.Status != profiles.StatusTerminated || rec.Reason.Code != test.reason {
				t.Errorf("%s, %q", rec.Status, rec.Reason)
			}
			row, err := r.catalogue.NewestSnapshot(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if !row.Rescue || row.ExpiresAt.Sub(row.CreatedAt) != 24*time.Hour || row.Datadir != "clean" {
				t.Errorf("%+v", row)
			}
			if d, err := r.library.Default(t.Context(), alice, "alice"); err != nil || d.SnapshotID != old {
				t.Errorf("default %+v, %v", d, err)
			}
			r.wantSnapshots(old, row.ID)
			// The rescue restores, and is removed when it expires.
			r.end(alice, r.create(alice, func(c *request.Create) { c.FromSession = id }).ID, none)
			r.janitor.Sweep(t.Context())
			r.wantSnapshots(old, row.ID)
			r.clock.add(25 * time.Hour)
			r.janitor.Sweep(t.Context())
			r.wantSnapshots(old)
			_, err = r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromSession = id }))
			wantCode(t, err, fault.NoSnapshot)
		})
	}
}

// A session that a limit ends before its create is answered was made: the answer says how it ended.
func TestTimeoutBeforeAnswer(t *testing.T) {
	r := newRig(t, nil)
	const id = "session"
	r.browsers.on("open", func(*fakeChrome) error { r.ended(id); return nil })
	info := r.create(alice, func(c *request.Create) { c.SessionID, c.Idle, c.StartURL = id, soon, "https://a.example/" })
	if info.ID != id || info.Status != profiles.StatusTerminated || info.Reason.Code != profiles.ReasonIdle || info.Existing || len(info.Tickets) > 0 {
		t.Errorf("%+v", info)
	}
}

// on_timeout: discard and read_only save nothing. persist saves everything as the
// default.
func TestTimeoutSaves(t *testing.T) {
	for name, ask := range map[string]func(*request.Create){
		"discard":   func(c *request.Create) { c.DiscardOnEnd = true },
		"read only": func(c *request.Create) { c.ReadOnly = true },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			id := r.create(alice, func(c *request.Create) { ask(c); c.Idle = soon }).ID
			if rec := r.ended(id); rec.Status != profiles.StatusTerminated || rec.Reason.Code != profiles.ReasonIdle {
				t.Errorf("%s, %q", rec.Status, rec.Reason)
			}
			r.wantSnapshots()
		})
	}
	t.Run("persist", func(t *testing.T) {
		r := newRig(t, nil)
		r.saved(alice, asDefault)
		id := r.create(alice, func(c *request.Create) { fromAlice(c); c.Persist, c.Idle = true, soon }).ID
		r.ended(id)
		row, err := r.catalogue.NewestSnapshot(t.Context(), id)
		if err != nil || row.Rescue || !row.ExpiresAt.IsZero() {
			t.Fatalf("%+v, %v", row, err)
		}
		if d, err := r.library.Default(t.Context(), alice, "alice"); err != nil || d.SnapshotID != row.ID || d.Version != 2 {
			t.Errorf("default %+v, %v", d, err)
		}
	})
	t.Run("persist, ended without a save", func(t *testing.T) {
		r := newRig(t, nil)
		id := r.create(alice, func(c *request.Create) { c.Persist = true }).ID
		a, err := r.End(t.Context(), alice, id, none)
		if err != nil || a.Snapshot == nil || !a.Default.Moved {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// A save of a read_only session is refused, and the session continues.
func TestReadOnly(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { c.ReadOnly = true }).ID
	for _, save := range []request.End{filesystem, memory, asDefault} {
		_, err := r.End(t.Context(), alice, id, save)
		wantCode(t, err, fault.Unsupported)
	}
	if r.status(id) != profiles.StatusReady {
		t.Errorf("status %s", r.status(id))
	}
	r.end(alice, id, none)
	r.wantSnapshots()
}

// A client, a call or a pause stops the idle limit, but not the lifetime limit.
func TestWhatStopsIdleLimit(t *testing.T) {
	past := func(t *testing.T) { // several idle limits
		after := time.NewTimer(4 * soon)
		defer after.Stop()
		<-after.C
	}
	t.Run("client", func(t *testing.T) {
		r := newRig(t, nil)
		id := r.create(alice, func(c *request.Create) { c.Idle = time.Hour }).ID
		leave := r.attach(id)
		l := r.sessions.Find(id)
		if err := l.ask(t.Context(), func() error { l.request.Idle = soon; l.touch(); return nil }); err != nil {
			t.Fatal(err)
		}
		past(t)
		if r.status(id) != profiles.StatusRunning {
			t.Errorf("status %s", r.status(id))
		}
		leave()
		if rec := r.ended(id); rec.Reason.Code != profiles.ReasonIdle {
			t.Errorf("%q", rec.Reason)
		}
	})
	t.Run("call", func(t *testing.T) {
		r := newRig(t, nil)
		id := r.create(alice, func(c *request.Create) { c.Idle = time.Hour }).ID
		under, proceed := make(chan struct{}), make(chan struct{})
		r.browsers.on("navigate", func(*fakeChrome) error { close(under); <-proceed; return nil })
		done := make(chan error, 1)
		go func() { _, err := r.Navigate(t.Context(), alice, id, "https://a.example/"); done <- err }()
		<-under
		l := r.sessions.Find(id)
		if err := l.ask(t.Context(), func() error { l.request.Idle = soon; l.touch(); return nil }); err != nil {
			t.Fatal(err)
		}
		past(t)
		if r.sessions.Find(id) == nil {
			t.Error("the session ended while a call ran")
		}
		close(proceed)
		if err := <-done; err != nil {
			t.Error(err)
		}
		r.ended(id)
	})
	t.Run("pause", func(t *testing.T) {
		r := newRig(t, nil)
		id := r.create(alice, func(c *request.Create) { c.Idle = time.Hour }).ID
		if _, err := r.Pause(t.Context(), alice, id); err != nil {
			t.Fatal(err)
		}
		l := r.sessions.Find(id)
		if err := l.ask(t.Context(), func() error { l.request.Idle = soon; l.touch(); return nil }); err != nil {
			t.Fatal(err)
		}
		past(t)
		if r.status(id) != profiles.StatusPaused {
			t.Errorf("status %s", r.status(id))
		}
		if _, err := r.Resume(t.Context(), alice, id, ""); err != nil {
			t.Fatal(err)
		}
		r.ended(id)
	})
	t.Run("lifetime", func(t *testing.T) {
		r := newRig(t, nil)
		id := r.create(alice, func(c *request.Create) { c.Lifetime = 200 * time.Millisecond }).ID
		c := client{make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- r.Connect(context.Background(), alice, id, Client{}, c) }()
		if rec := r.ended(id); rec.Reason.Code != profiles.ReasonLifetime {
			t.Errorf("%q", rec.Reason)
		}
		if err := <-served; err != nil && !fault.Is(err, fault.SessionNotRunning) {
			t.Errorf("the client got %v", err)
		}
	})
}

// A lifetime whose save failed has still ended: the end is tried again.
func TestLifetimeIsTriedAgain(t *testing.T) {
	r := newRig(t, nil)
	const id = "session"
	r.catalogue.fails(fault.New(fault.StoreFull, "fake", "no space"), "Commit")
	r.browsers.on("restored", func(*fakeChrome) error {
		r.catalogue.works()
		// A client stops the idle limit, so only the lifetime can end the session now.
		l := r.sessions.Find(id)
		return l.ask(t.Context(), func() error { l.clients++; l.request.Idle = soon; l.touch(); return nil })
	})
	r.create(alice, func(c *request.Create) { c.SessionID, c.Lifetime, c.Idle = id, soon, time.Hour })
	if rec := r.ended(id); rec.Reason.Code != profiles.ReasonLifetime {
		t.Errorf("%q", rec.Reason)
	}
}

// Pause freezes Chrome while no client is connected. A client thaws it while it is
// connected.
func TestPause(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	chrome := r.browsers.last()
	for _, want := range []string{"paused", "already_paused"} {
		a, err := r.Pause(t.Context(), alice, id)
		if err != nil || a.Status != want || !chrome.Frozen() {
			t.Errorf("%+v, %v, frozen %t", a, err, chrome.Frozen())
		}
	}
	c := client{make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- r.Connect(t.Context(), alice, id, Client{}, c) }()
	await(t, "thawed", func() bool { return !chrome.Frozen() })
	if r.status(id) != profiles.StatusPaused {
		t.Errorf("status %s", r.status(id))
	}
	close(c.leave)
	if err := <-served; err != nil {
		t.Error(err)
	}
	await(t, "Chrome is frozen when the client has disconnected", chrome.Frozen)
	for _, want := range []string{"resumed", "already_running"} {
		a, err := r.Resume(t.Context(), alice, id, "")
		if err != nil || a.Status != want || chrome.Frozen() {
			t.Errorf("%+v, %v, frozen %t", a, err, chrome.Frozen())
		}
	}
	// A paused session can be saved; it is thawed for that.
	if _, err := r.Pause(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	r.wantSnapshots(r.end(alice, id, filesystem).Snapshot.ID)
	for name, call := range map[string]func() error{
		"pause":  func() error { _, err := r.Pause(t.Context(), alice, id); return err },
		"cancel": func() error { _, err := r.Cancel(t.Context(), alice, id); return err },
		"pages":  func() error { _, err := r.Pages(t.Context(), alice, id); return err },
	} {
		t.Run(name+" after the end", func(t *testing.T) { wantCode(t, call(), fault.SessionNotRunning) })
	}
}

// A pause that cannot freeze Chrome returns an error, and the session is not paused.
func TestPauseFails(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.browsers.fails(fault.New(fault.Timeout, "fake", ""), "freeze")
	_, err := r.Pause(t.Context(), alice, id)
	wantCode(t, err, fault.Timeout)
	if r.status(id) != profiles.StatusReady {
		t.Errorf("status %s", r.status(id))
	}
}

func TestStatus(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { c.StartURL = "https://a.example/" }).ID
	if diff := cmp.Diff([]string{"https://a.example/"}, r.browsers.last().opened); diff != "" {
		t.Errorf("start_url (-want +got):\n%s", diff)
	}
	want := func(w agent.Status) {
		t.Helper()
		got, err := r.Status(t.Context(), alice, id)
		if diff := cmp.Diff(w, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	want(agent.Status{Status: "ready", SessionStatus: "ready", ExecutionStatus: "ready"})
	r.attach(id)()
	want(agent.Status{Status: "running", SessionStatus: "running", ExecutionStatus: "ready"})
	r.end(alice, id, none)
	want(agent.Status{Status: "finished", SessionStatus: "completed", ExecutionStatus: "finished"})
}

// A pause that waits for another one under way returns its outcome.
func TestPauseWhileOneFails(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	under, proceed := make(chan struct{}), make(chan struct{})
	r.browsers.on("freeze", func(*fakeChrome) error {
		close(under)
		<-proceed
		return fault.New(fault.Timeout, "fake", "")
	})
	outcomes := make(chan error, 2)
	pause := func() {
		_, err := r.Pause(t.Context(), alice, id)
		outcomes <- err
	}
	go pause()
	<-under
	go pause()
	l := r.sessions.Find(id)
	await(t, "the second pause waits", func() (waits bool) {
		err := l.ask(t.Context(), func() error { waits = l.freezeQueue.Len() == 2; return nil })
		return err == nil && waits
	})
	close(proceed)
	for range 2 {
		if err := <-outcomes; err == nil {
			t.Error("a running session is reported as paused")
		}
	}
}
