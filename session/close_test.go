package session

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// A stop saves running sessions as rescues, refuses new ones, and waits for an end that
// is under way.
func TestClose(t *testing.T) {
	r := newRig(t, nil)
	one, two := r.create(alice, nil).ID, r.create(bob, nil).ID
	discard := r.create(alice, func(c *request.Create) { c.DiscardOnEnd = true }).ID
	under, proceed := make(chan struct{}), make(chan struct{})
	ending := r.create(alice, nil).ID
	r.browsers.on("capture", func(c *fakeChrome) error {
		if r.browsers.last() == c {
			close(under)
			<-proceed
		}
		return nil
	})
	asked := make(chan save.EndAnswer, 1)
	go func() {
		a, err := r.End(t.Context(), alice, ending, asDefault)
		if err != nil {
			t.Error(err)
		}
		asked <- a
	}()
	<-under
	closed := make(chan error, 1)
	go func() { closed <- r.Close(t.Context()) }()
	for _, id := range []string{one, two, discard} {
		r.ended(id)
	}
	_, err := r.Create(t.Context(), alice, newCreate(nil))
	wantCode(t, err, fault.ShuttingDown)
	wantCode(t, r.Ready(t.Context()), fault.ShuttingDown)
	close(proceed)
	a := <-asked
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if a.Snapshot == nil || !a.Default.Moved || a.Snapshot.Rescue {
		t.Errorf("the end that was under way: %+v", a)
	}
	kept := []string{a.Snapshot.ID}
	for _, id := range []string{one, two} {
		row, err := r.catalogue.NewestSnapshot(t.Context(), id)
		if err != nil || !row.Rescue || row.Datadir != "clean" {
			t.Fatalf("%+v, %v", row, err)
		}
		if rec := r.ended(id); rec.Status != profiles.StatusTerminated || rec.Reason.Code != profiles.ReasonShutdown {
			t.Errorf("%s, %q", rec.Status, rec.Reason)
		}
		kept = append(kept, row.ID)
	}
	r.wantSnapshots(kept...)
	if r.dirs() != 0 {
		t.Errorf("%d directories", r.dirs())
	}
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// A stop without time leaves what it cannot save. The next start rescues it with a crash
// profile, records that, and removes the directory.
func TestCloseDeadline(t *testing.T) {
	r := newRig(t, nil)
	_, old := r.saved(alice, asDefault)
	id := r.create(alice, fromAlice).ID
	discard := r.create(alice, func(c *request.Create) { c.DiscardOnEnd = true }).ID
	stuck, waiting := r.create(alice, nil).ID, make(chan struct{})
	name := r.browsers.last().dir.Name()
	r.browsers.on("capture", func(c *fakeChrome) error {
		if c.dir.Name() == name {
			close(waiting)
		}
		<-c.done // a page that never answers, until Chrome is killed
		return fault.New(fault.Timeout, "fake", "")
	})
	r.browsers.on("restored", func(*fakeChrome) error { return errBroken })
	go func() { _, _ = r.End(context.Background(), alice, stuck, filesystem) }()
	<-waiting
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, c := range r.browsers.all() {
		context.AfterFunc(r.ctx, c.die) // a capture ends with its context
	}
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	r.browsers.works()
	next := r.daemon(nil)
	if err := recovered(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	kept := []string{old}
	for _, id := range []string{id, stuck} {
		rec := r.ended(id)
		if rec.Status != profiles.StatusTerminated || rec.Reason.Code != profiles.ReasonKilled {
			t.Errorf("%s: %s, %q", id, rec.Status, rec.Reason)
		}
		row, err := r.catalogue.NewestSnapshot(t.Context(), id)
		if err != nil || !row.Rescue || row.Datadir != "crash" {
			t.Fatalf("%+v, %v", row, err)
		}
		kept = append(kept, row.ID)
	}
	if rec := r.ended(discard); !rec.Status.Ended() {
		t.Errorf("discarded session: %s", rec.Status)
	}
	if r.dirs() != 0 {
		t.Errorf("%d directories", r.dirs())
	}
	r.wantSnapshots(kept...)
	back, err := next.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromSession = id }))
	if err != nil || back.Restored.Datadir != state.DatadirCrash {
		t.Errorf("%+v, %v", back.Restored, err)
	}
	a, err := next.End(t.Context(), alice, id, filesystem)
	if err != nil || a.Deleted || a.Snapshot == nil {
		t.Errorf("end of a rescued session: %+v, %v", a, err)
	}
}

// When Chrome dies, its profile is kept as a rescue and the session is in error.
func TestChromeCrash(t *testing.T) {
	r := newRig(t, nil)
	_, old := r.saved(alice, asDefault)
	id := r.create(alice, fromAlice).ID
	leave := r.attach(id)
	r.browsers.last().die()
	rec := r.ended(id)
	leave()
	if rec.Status != profiles.StatusError || rec.Reason.Code != profiles.ReasonCrashed {
		t.Errorf("%s, %q", rec.Status, rec.Reason)
	}
	row, err := r.catalogue.NewestSnapshot(t.Context(), id)
	if err != nil || !row.Rescue || row.Datadir != "crash" || row.ExpiresAt.IsZero() {
		t.Fatalf("%+v, %v", row, err)
	}
	r.wantSnapshots(old, row.ID)
	if r.dirs() != 0 {
		t.Errorf("%d directories", r.dirs())
	}
	if d, err := r.library.Default(t.Context(), alice, "alice"); err != nil || d.SnapshotID != old {
		t.Errorf("default %+v, %v", d, err)
	}
	back := r.create(alice, func(c *request.Create) { c.FromSession = id })
	if back.Restored.Datadir != state.DatadirCrash {
		t.Errorf("%+v", back.Restored)
	}
}

// A crash whose rescue fails keeps the user data directory. A crash of a discarded
// session that cannot be recorded is not retried forever.
func TestChromeCrashUnrecorded(t *testing.T) {
	for name, ask := range map[string]func(*request.Create){
		"rescue": nil, "discard": func(c *request.Create) { c.DiscardOnEnd = true },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			id := r.create(alice, ask).ID
			r.catalogue.fails(fault.New(fault.StoreFull, "fake", "no space"), "Commit", "EndSession")
			r.browsers.last().die()
			await(t, "the session's record says that the data is kept", func() bool {
				rec, err := r.catalogue.Session(t.Context(), id)
				return err == nil && rec.Status == profiles.StatusError && rec.Reason.Code == profiles.ReasonCrashKept
			})
			if r.dirs() != 1 {
				t.Errorf("%d directories", r.dirs())
			}
			r.catalogue.works()
			if _, err := r.Resume(t.Context(), alice, id, ""); err != nil {
				t.Fatal(err)
			}
			r.wantSnapshots(r.end(alice, id, filesystem).Snapshot.ID)
		})
	}
}

// Every kill during a stop has a deadline, so that no Chrome, live or parked, keeps the
// daemon from ending.
func TestKillsOfAStopHaveADeadline(t *testing.T) {
	r := newRig(t, nil)
	parked := r.create(alice, nil).ID
	if _, err := r.End(t.Context(), alice, parked, memory); err != nil {
		t.Fatal(err)
	}
	r.create(alice, nil)
	if n := r.Counts(); n.Live != 1 || n.Parked != 1 {
		t.Fatalf("%+v", n)
	}
	r.browsers.mu.Lock()
	r.browsers.endless = 0
	r.browsers.mu.Unlock()
	now, cancel := context.WithCancel(t.Context())
	cancel() // as a second signal does
	if err := r.Close(now); err != nil {
		t.Fatal(err)
	}
	r.browsers.mu.Lock()
	defer r.browsers.mu.Unlock()
	if r.browsers.endless > 0 {
		t.Errorf("%d kills have no deadline", r.browsers.endless)
	}
}
