package session

import (
	"runtime"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/state"
)

func onCrash(c *request.Create) { c.Restart = true }

// crashChrome kills a session's Chrome and waits until another runs or the session has
// ended.
func (r *rig) crashChrome(id string) {
	r.t.Helper()
	old := r.sessions.Find(id)
	was := r.browsers.last()
	was.die()
	await(r.t, "the crash is handled", func() bool {
		if r.sessions.Find(id) == nil {
			return true
		}
		restarted := false
		err := old.ask(r.t.Context(), func() error {
			restarted = old.ending == nil && old.chrome != browsers.Chrome(was)
			return nil
		})
		return err == nil && restarted
	})
}

// A crashed Chrome is started again on its data: the same session, the same ticket, a new
// run. Too many crashes end the session.
func TestRestartOnCrash(t *testing.T) {
	r := newRig(t, nil)
	first := r.create(alice, onCrash)
	dir := r.browsers.last().dir
	for n := range maxRestarts {
		r.crashChrome(first.ID)
		info, err := r.Get(t.Context(), alice, first.ID)
		if err != nil || info.Status != profiles.StatusReady || !info.BrowserRestarted || info.Tickets[access.PurposeCDP] != first.Tickets[access.PurposeCDP] {
			t.Fatalf("crash %d: %+v, %v", n+1, info, err)
		}
		if c := r.browsers.last(); c.dir.Name() != dir.Name() || c.restored.Datadir != state.DatadirCrash {
			t.Errorf("crash %d: on %s as %s", n+1, c.dir.Name(), c.restored.Datadir)
		}
	}
	r.crashChrome(first.ID)
	info, err := r.Get(t.Context(), alice, first.ID)
	if err != nil || info.Status != profiles.StatusError || info.Reason.Code != profiles.ReasonCrashLoop {
		t.Errorf("after too many crashes: %s (%s), %v", info.Status, info.Reason, err)
	}
	r.wantHistory(first.ID, "1 failed (Chrome crashed): started ended", "2 failed (Chrome crashed): restored ended",
		"3 failed (Chrome crashed): restored ended", "4 failed (Chrome crashed): restored saved ended")
	r.resumed(alice, first.ID)
	r.crashChrome(first.ID) // the count starts again
	if s := r.status(first.ID); s != profiles.StatusReady {
		t.Errorf("after a resume: %s", s)
	}
}

func TestRestartsAreForgotten(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, onCrash).ID
	for n := range 2 * maxRestarts {
		r.crashChrome(id)
		if s := r.status(id); s != profiles.StatusReady {
			t.Fatalf("crash %d: %s", n+1, s)
		}
		r.clock.add(restartWindow / 2)
	}
}

// If no Chrome starts, the data is rescued.
func TestRestartFails(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, onCrash).ID
	r.browsers.fails(errBroken, "restored")
	r.crashChrome(id)
	info, err := r.Get(t.Context(), alice, id)
	if err != nil || info.Status != profiles.StatusError || info.Reason.Code != profiles.ReasonNotRestarted || r.dirs() != 0 {
		t.Errorf("%s (%s), %v, %d directories", info.Status, info.Reason, err, r.dirs())
	}
	row, err := r.catalogue.NewestSnapshot(t.Context(), id)
	if err != nil || !row.Rescue {
		t.Fatalf("%+v, %v", row, err)
	}
	r.browsers.works()
	if info := r.resumed(alice, id); info.Restored.SnapshotID != row.ID {
		t.Errorf("restored %+v", info.Restored)
	}
}

// A call for the browser, a checkpoint and an end wait while Chrome is started again.
// Until it runs the session is in error.
func TestCallsWaitForRestart(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	for what, ask := range map[string]func(id string) error{
		"navigate":   func(id string) error { _, err := r.Navigate(ctx, alice, id, "https://a.example/"); return err },
		"checkpoint": func(id string) error { _, err := r.Checkpoint(ctx, alice, id, plain); return err },
		"resume":     func(id string) error { _, err := r.Resume(ctx, alice, id, ""); return err },
		"create": func(id string) error {
			_, err := r.Create(ctx, alice, request.Create{SessionID: id, Resume: true})
			return err
		},
		"message": func(id string) error {
			_, err := r.Send(ctx, alice, id, agent.MessageRequest{Content: "go on"})
			return err
		},
		"end": func(id string) error { _, err := r.End(ctx, alice, id, filesystem); return err },
	} {
		id := r.create(alice, func(c *request.Create) { onCrash(c); withWebhook(c) }).ID
		l := r.sessions.Find(id)
		began, goOn := make(chan struct{}), make(chan struct{})
		r.browsers.on("restored", func(*fakeChrome) error { close(began); <-goOn; return nil })
		r.browsers.last().die()
		<-began
		if info, err := r.Get(ctx, alice, id); err != nil || r.status(id) != profiles.StatusError || info.Reason.Code != profiles.ReasonCrashed || info.Ended() {
			t.Errorf("%s: meanwhile %s (%s), over: %t, %v", what, info.Status, info.Reason, info.Ended(), err)
		}
		done := make(chan error, 1)
		go func() { done <- ask(id) }()
		await(t, "a call waits", func() bool {
			waits := false
			err := l.ask(ctx, func() error { waits = l.ending != nil && len(l.ending.waiters) > 0; return nil })
			return err != nil || waits || len(done) > 0
		})
		if len(done) > 0 {
			t.Errorf("%s did not wait", what)
		}
		close(goOn)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
		r.browsers.works()
		if what != "end" {
			if s := r.status(id); s.Ended() {
				t.Errorf("%s: afterwards %s", what, s)
			}
			r.end(alice, id, none)
		}
	}
}

// A daemon that dies during a restart leaves the record of a session in error. The next
// daemon rescues it like any other, and it can be resumed.
func TestKilledDuringRestart(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	id := r.create(alice, onCrash).ID
	r.browsers.on("restored", func(*fakeChrome) error { r.catalogue.fails(errBroken, "UpdateSession"); return nil })
	r.crashChrome(id)
	if rec, err := r.catalogue.Session(ctx, id); err != nil || rec.Status != profiles.StatusError || !rec.EndedAt.IsZero() {
		t.Fatalf("%+v, %v", rec, err)
	}
	r.kill()
	r.browsers.works()
	r.Service = r.daemon(nil)
	if err := recovered(ctx, r.Service); err != nil {
		t.Fatal(err)
	}
	row, err := r.catalogue.NewestSnapshot(ctx, id)
	if err != nil || !row.Rescue {
		t.Fatalf("%+v, %v", row, err)
	}
	if info := r.resumed(alice, id); info.Status != profiles.StatusReady || info.Restored.SnapshotID != row.ID {
		t.Errorf("%s, from %+v", info.Status, info.Restored)
	}
}

// After a crash is reported, a call must not find the session running.
func TestCallRightAfterCrash(t *testing.T) {
	r := newRig(t, nil)
	for range 20 { // which of two events the session handles first is random
		id := r.create(alice, nil).ID
		l := r.sessions.Find(id)
		busy, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			if err := l.ask(t.Context(), func() error { close(busy); <-goOn; return nil }); err != nil {
				t.Error(err)
			}
		}()
		<-busy
		r.browsers.last().die()
		asked := make(chan error, 1)
		go func() { asked <- l.ask(t.Context(), l.usable) }()
		runtime.Gosched() // so that the session usually finds both waiting
		close(goOn)
		<-over
		if err := <-asked; !fault.Is(err, fault.SessionEnding) && !fault.Is(err, fault.SessionNotRunning) {
			t.Fatalf("the session is usable: %v", err)
		}
		await(t, "its end", func() bool { return r.sessions.Find(id) == nil })
	}
}

// Without restart a crash ends the session.
func TestNoRestart(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.crashChrome(id)
	if s := r.status(id); s != profiles.StatusError {
		t.Errorf("the session is %s", s)
	}
}

// A crash that ends the session is reported when Chrome has died, not when its data is
// saved.
func TestCrashIsReportedAtOnce(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	goOn := make(chan struct{})
	r.browsers.on("kill", func(*fakeChrome) error { <-goOn; return nil })
	r.browsers.last().die()
	await(t, "the crash is reported", func() bool {
		info, err := r.Get(t.Context(), alice, id)
		return err == nil && info.Status == profiles.StatusError && info.Reason.Code == profiles.ReasonCrashed && info.EndedAt.IsZero()
	})
	close(goOn)
	await(t, "the session has ended", func() bool { return r.sessions.Find(id) == nil })
}
