package session

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// failedSave makes a session whose save failed and whose Chrome could not be reopened.
func (r *rig) failedSave() (id string) {
	r.t.Helper()
	id = r.create(alice, nil).ID
	r.catalogue.fails(errBroken, "Commit")
	r.browsers.fails(errBroken, "restored")
	_, err := r.End(r.t.Context(), alice, id, filesystem)
	wantCode(r.t, err, fault.SaveFailed)
	r.catalogue.works()
	r.browsers.works()
	return id
}

// reopening makes such a session and resumes it. Its Chrome starts when goOn is called,
// or fails when the daemon cancels it. resumed receives the outcome.
func (r *rig) reopening() (id string, goOn func(), resumed <-chan error) {
	r.t.Helper()
	id = r.failedSave()
	began, up, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	r.browsers.on("restored", func(c *fakeChrome) error {
		close(began)
		select {
		case <-up:
			return nil
		case <-c.starting.Done():
			return fault.Wrap(c.starting.Err(), fault.BrowserFailed, "fake", "Chrome does not start")
		}
	})
	go func() {
		_, err := r.Resume(context.WithoutCancel(r.t.Context()), alice, id, "")
		done <- err
	}()
	select {
	case <-began:
	case err := <-done:
		r.t.Fatalf("the resume ended first: %v", err)
	}
	return id, func() { close(up) }, done
}

// Sessions are listed and read while one of them waits for a Chrome that does not start.
// That session is in error, but has not ended.
func TestReadWhileChromeIsReopened(t *testing.T) {
	r := newRig(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	other := r.create(alice, nil).ID
	id, goOn, resumed := r.reopening()
	info, err := r.Get(ctx, alice, id)
	if err != nil || info.Status != profiles.StatusError || !info.Restarting || info.Ended() {
		t.Errorf("session is %s (%s), restarting: %t, %v", info.Status, info.Reason, info.Restarting, err)
	}
	if s, err := r.Status(ctx, alice, id); err != nil || s.SessionStatus != string(profiles.StatusError) {
		t.Errorf("status %+v, %v", s, err)
	}
	all, _, err := r.List(ctx, alice, request.List{})
	if err != nil || len(all) != 2 {
		t.Errorf("%d are listed, %v", len(all), err)
	}
	if info, err := r.Get(ctx, alice, other); err != nil || info.Status != profiles.StatusReady {
		t.Errorf("the other session is %s, %v", info.Status, err)
	}
	if _, err := r.Send(ctx, alice, id, agent.MessageRequest{Type: "THOUGHT", Content: "it takes long"}); err != nil {
		t.Error(err)
	}
	goOn()
	if err := <-resumed; err != nil {
		t.Fatal(err)
	}
	if s := r.status(id); s != profiles.StatusReady {
		t.Errorf("afterwards the session is %s", s)
	}
}

// A call that waits for the Chrome returns when its own context ends. The reopening
// continues.
func TestWaitForAReopeningEnds(t *testing.T) {
	r := newRig(t, nil)
	id, goOn, resumed := r.reopening()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	waiters := map[string]func(context.Context) error{
		"resume": func(ctx context.Context) error { _, err := r.Resume(ctx, alice, id, ""); return err },
		"navigate": func(ctx context.Context) error {
			_, err := r.Navigate(ctx, alice, id, "https://a.example/")
			return err
		},
		"checkpoint": func(ctx context.Context) error { _, err := r.Checkpoint(ctx, alice, id, plain); return err },
		"pause":      func(ctx context.Context) error { _, err := r.Pause(ctx, alice, id); return err },
	}
	for what, wait := range waiters {
		if err := wait(over); err == nil {
			t.Errorf("%s did not end", what)
		}
	}
	l, before := r.sessions.Find(id), 0
	if err := l.ask(t.Context(), func() error { before = len(l.reopening.waiters); return nil }); err != nil {
		t.Fatal(err)
	}
	results := make(chan error, len(waiters))
	for _, wait := range waiters {
		go func() { results <- wait(context.WithoutCancel(t.Context())) }()
	}
	await(t, "all wait", func() bool {
		n := 0
		err := l.ask(t.Context(), func() error { n = len(l.reopening.waiters); return nil })
		return err == nil && n == before+len(waiters)
	})
	goOn()
	for range waiters {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if err := <-resumed; err != nil {
		t.Error(err)
	}
}

// An end during a reopening waits for it, so that the new Chrome's state is saved.
func TestEndWaitsForAReopening(t *testing.T) {
	r := newRig(t, nil)
	id, goOn, resumed := r.reopening()
	l, ended := r.sessions.Find(id), make(chan error, 1)
	go func() {
		a, err := r.End(context.WithoutCancel(t.Context()), alice, id, filesystem)
		if err == nil && (a.Snapshot == nil || a.Snapshot.Rescue) {
			t.Errorf("the session ended with %+v", a)
		}
		ended <- err
	}()
	await(t, "the end has begun", func() bool {
		begun := false
		return l.ask(t.Context(), func() error { begun = l.ending != nil; return nil }) == nil && begun
	})
	if info, err := r.Get(t.Context(), alice, id); err != nil || info.Ended() {
		t.Errorf("during the reopening: %s, %v", info.Status, err)
	}
	goOn()
	if err := <-resumed; err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s := r.status(id); s != profiles.StatusCompleted {
		t.Errorf("afterwards the session is %s", s)
	}
	r.wantHistory(id, "1 failed (a save failed and Chrome could not be reopened): started save_failed ended", "2 completed (asked): restored saved ended")
}

// An end cancels a Chrome that does not start: at once if nothing is to be saved, else
// after some time. The profile on disk is then saved.
func TestEndCancelsReopening(t *testing.T) {
	for name, asked := range map[string]request.End{"unsaved": none, "saved": filesystem} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) {
				if asked.Mode != save.None {
					c.Waits.Reopening = time.Millisecond
				}
			})
			id, _, resumed := r.reopening()
			r.end(alice, id, asked)
			wantCode(t, <-resumed, fault.BrowserFailed)
			if s := r.status(id); s != profiles.StatusCompleted || r.dirs() != 0 {
				t.Errorf("session is %s, %d directories are left", s, r.dirs())
			}
		})
	}
}

// A daemon that stops also cancels the reopening and saves the profile on disk.
func TestStopDuringAReopening(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Waits.Reopening = time.Millisecond })
	id, _, resumed := r.reopening()
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-resumed, fault.BrowserFailed)
	if row, err := r.catalogue.NewestSnapshot(t.Context(), id); err != nil || !row.Rescue {
		t.Errorf("%+v, %v", row, err)
	}
}

// A killed daemon leaves the profile, and the next daemon saves it.
func TestKilledDuringAReopening(t *testing.T) {
	r := newRig(t, nil)
	id, _, resumed := r.reopening()
	r.kill()
	if err := <-resumed; err == nil {
		t.Error("the session was resumed")
	}
	next := r.daemon(nil)
	r.browsers.works()
	if err := recovered(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if row, err := r.catalogue.NewestSnapshot(t.Context(), id); err != nil || !row.Rescue {
		t.Errorf("%+v, %v", row, err)
	}
}
