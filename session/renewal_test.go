package session

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/state"
)

type stateDocument = state.Document

// block makes a step of the next check wait. at is closed when the step begins. It
// continues, with an error or nil, when goOn is called.
func (a *renewalRig) block(step string, err error) (at chan struct{}, goOn func()) {
	at, on := make(chan struct{}), make(chan struct{})
	a.browsers.on(step, func(*fakeChrome) error {
		a.browsers.on(step, func(*fakeChrome) error { return nil })
		close(at)
		<-on
		return err
	})
	return at, func() { close(on) }
}

// A create during a check is not refused, and gets what the check saves if possible. A
// check that has not visited the site is stopped at once. One that has visited it gets
// some time.
func TestCreateWhileARenewalRuns(t *testing.T) {
	for name, test := range map[string]struct {
		step     string
		err      error
		patience time.Duration
		version  int64 // that the session begins with; 0: the create does not meet the check
	}{
		"while its browser starts":             {"restored", nil, hour, 1},
		"while it visits the site":             {"check", nil, hour, 2},
		"while the visit takes too long":       {"check", errBroken, time.Nanosecond, 1},
		"while it saves":                       {"close", nil, time.Nanosecond, 2},
		"while it visits, without a free slot": {"check", nil, hour, 2},
		"of another environment":               {"check", nil, hour, 0},
		"of another, without a free slot":      {"check", nil, hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := newRenewalRig(t, func(c *Config) { c.MaxSessions, c.Waits.RenewalPatience = 2, test.patience })
			at, goOn := a.block(test.step, test.err)
			a.pass(hour)
			<-at
			hurried := func() bool { return a.Counts().WaitForCheck == 1 }
			who, from := alice, fromAlice
			full := strings.HasSuffix(name, "without a free slot")
			if full {
				defer func(id string) { a.end(bob, id, none) }(a.create(bob, nil).ID)
			}
			if test.version == 0 {
				who, from = bob, nil
			}
			made := make(chan answer.Info, 1)
			go func() {
				info, err := a.Create(t.Context(), who, newCreate(from))
				if err != nil {
					t.Error(err)
				}
				made <- info
			}()
			if test.version == 0 {
				if full {
					await(t, "the create waits", hurried)
					goOn()
					a.end(bob, (<-made).ID, none)
					return
				}
				id := (<-made).ID
				goOn()
				a.awaitChecks("check logged_in", 1)
				a.end(bob, id, none)
				return
			}
			if test.version == 1 {
				<-a.browsers.lastContext().Done()
			} else {
				await(t, "the create waits", hurried)
			}
			goOn()
			info := <-made
			if info.BaseVersion != test.version || a.current().Version != test.version {
				t.Errorf("the session began with version %d, the default is %d", info.BaseVersion, a.current().Version)
			}
			a.end(alice, info.ID, none)
		})
	}
}

// A check yields to any move of the default, and leaves nothing behind.
func TestRenewalLosesTheRace(t *testing.T) {
	a := newRenewalRig(t, nil)
	_, other := a.saved(alice, filesystem)
	a.browsers.on("close", func(*fakeChrome) error {
		_, err := a.library.SetDefault(t.Context(), alice, "alice", other, nil)
		return err
	})
	a.pass(hour)
	a.awaitChecks("login_check unchanged", 1)
	a.browsers.works()
	if d := a.current(); d.SnapshotID != other || d.Version != 2 {
		t.Errorf("%+v", d)
	}
	a.wantSnapshots(a.first, other)
}

// A fresh session does not stop a check, and may still make its environment the default.
func TestRenewalIsNoConflict(t *testing.T) {
	a := newRenewalRig(t, nil)
	for n := range 2 {
		id := a.create(alice, nil).ID
		a.pass(hour)
		a.awaitChecks("login_check saved", n+1)
		if n == 1 { // also as a checkpoint that found nothing changed
			if _, err := a.Checkpoint(t.Context(), alice, id, request.Checkpoint{}); err != nil {
				t.Fatal(err)
			}
			c, err := a.Checkpoint(t.Context(), alice, id, request.Checkpoint{SaveAsDefault: true})
			if err != nil || !c.Unchanged || !c.Default.Moved || c.Default.Version != 5 {
				t.Errorf("%+v, %v", c.Default, err)
			}
			a.end(alice, id, none)
		} else if end := a.end(alice, id, asDefault); !end.Default.Moved || end.Default.Version != 3 {
			t.Errorf("over an automatic renewal: %+v", end.Default)
		}
	}
}

// A resumed session begins with what checks renewed of its last save, and moves the
// default on from there. A session that has saved something else since begins with that.
func TestResumeFromRenewal(t *testing.T) {
	a := newRenewalRig(t, nil)
	d, err := a.catalogue.Default(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	id := d.SessionID
	resume := func(want string) {
		t.Helper()
		if _, err := a.Resume(t.Context(), alice, id, ""); err != nil {
			t.Fatal(err)
		}
		if info, err := a.Get(t.Context(), alice, id); err != nil || info.BaseSnapshotID != want {
			t.Errorf("it begins with %s, want %s: %v", info.BaseSnapshotID, want, err)
		}
	}
	for n := range 2 { // twice, from a second renewal too
		a.pass(hour)
		a.awaitChecks("login_check saved", n+1)
	}
	resume(a.current().SnapshotID)
	if end := a.end(alice, id, asDefault); !end.Default.Moved || end.Default.Version != 4 {
		t.Errorf("from the current default: %+v", end.Default)
	}
	resume(a.current().SnapshotID)
	old := a.end(alice, id, filesystem).Snapshot.ID
	a.pass(hour)
	a.awaitChecks("login_check saved", 3)
	resume(old)
}

// A state that cannot be saved completely is not saved.
func TestIncompleteRenewalIsNotSaved(t *testing.T) {
	for name, prepare := range map[string]func(a *renewalRig){
		"something could not be read": func(a *renewalRig) {
			a.browsers.on("capture", func(c *fakeChrome) error {
				c.reads = func(doc *stateDocument) {
					doc.Missed = []state.Missed{{Component: state.ComponentSessionStorage, Origin: "https://a.example", Reason: "it did not answer"}}
				}
				return nil
			})
		},
		"Chrome did not close":   func(a *renewalRig) { a.browsers.fails(errBroken, "close") },
		"the catalogue fails":    func(a *renewalRig) { a.catalogue.fails(errBroken, "Commit") },
		"the state was not read": func(a *renewalRig) { a.browsers.fails(errBroken, "capture") },
	} {
		t.Run(name, func(t *testing.T) {
			a := newRenewalRig(t, nil)
			prepare(a)
			a.pass(hour)
			a.awaitChecks("login_check failed", 1)
			await(t, "the check is recorded", func() bool { return a.current().LastCheck != nil })
			if c := a.current().LastCheck; !c.LoggedIn || c.Error == nil || c.Failures != 1 || *c.Version != 1 {
				t.Errorf("recorded %+v", c)
			}
			a.catalogue.works()
			a.browsers.works()
			if d := a.current(); d.Version != 1 || a.dirs() != 0 || !a.browsers.last().dead() {
				t.Errorf("%+v, %d directories", d, a.dirs())
			}
			a.wantSnapshots(a.first)
		})
	}
}

// If a save would be impossible, the check does not visit the site. It is tried again
// soon.
func TestRenewalThatCannotBeSaved(t *testing.T) {
	for name, test := range map[string]struct {
		prepare, repair func(a *renewalRig)
		chromes         int // Chromes started for the check
	}{
		"the store fails": {func(a *renewalRig) { a.store.FailAt(1, faultstore.Dead, errBroken) },
			func(a *renewalRig) { a.store.FailAt(0, faultstore.Refuse, nil) }, 0},
		"the store is full": {func(a *renewalRig) { a.watched.full.Store(true) }, func(a *renewalRig) { a.watched.full.Store(false) }, 0},
		"a newer Chrome saved it": {func(a *renewalRig) {
			a.browsers.on("restored", func(c *fakeChrome) error { c.version = "155.0.0.0"; return nil })
		}, func(a *renewalRig) { a.browsers.works() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := newRenewalRig(t, nil)
			before := len(a.browsers.all())
			test.prepare(a)
			a.pass(hour)
			a.awaitChecks("check failed", 1)
			await(t, "the check is recorded", func() bool { return a.current().LastCheck != nil })
			made := a.browsers.all()[before:]
			if c := a.current().LastCheck; c.LoggedIn || c.Error == nil || len(made) != test.chromes || a.dirs() != 0 {
				t.Errorf("%+v, %d Chromes, %d directories", c, len(made), a.dirs())
			}
			for _, c := range made {
				if len(c.asked) > 0 {
					t.Error("the check visited the site")
				}
			}
			test.repair(a)
			a.pass(30 * time.Second)
			a.awaitChecks("login_check saved", 1)
		})
	}
}

// A failed save is tried again while its Chrome, or that Chrome's data, exists.
func TestRenewalTriesToSaveAgain(t *testing.T) {
	for name, prepare := range map[string]func(a *renewalRig){
		"the reading": func(a *renewalRig) {
			a.browsers.on("capture", func(*fakeChrome) error { a.browsers.works(); return errBroken })
		},
		"the storing": func(a *renewalRig) {
			a.browsers.on("close", func(*fakeChrome) error { a.store.FailAt(1, faultstore.Refuse, errBroken); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newRenewalRig(t, nil)
			prepare(a)
			a.pass(hour)
			a.awaitChecks("login_check saved", 1)
			await(t, "the check is recorded", func() bool { return a.current().LastCheck != nil })
			if d := a.current(); d.Version != 2 || d.LastCheck.Error != nil || a.meter.n("check logged_in") != 1 {
				t.Errorf("%+v, %+v", d, d.LastCheck)
			}
			a.wantSnapshots(a.first, a.current().SnapshotID)
		})
	}
}

// A daemon that stops cancels a check. A killed daemon leaves nothing of a check that the
// next one would keep.
func TestRenewalWhenTheDaemonEnds(t *testing.T) {
	for _, killed := range []bool{false, true} {
		a := newRenewalRig(t, nil)
		begun := make(chan struct{})
		a.browsers.on("check", func(*fakeChrome) error {
			close(begun)
			<-a.browsers.lastContext().Done()
			return fault.New(fault.BrowserFailed, "fake", "")
		})
		a.pass(hour)
		<-begun
		if killed {
			a.kill()
		} else if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a.dirs() != 0 || !a.browsers.last().dead() {
			t.Errorf("%d directories", a.dirs())
		}
		seen := make(chan struct{})
		a.browsers.on("check", func(*fakeChrome) error { // the next daemon checks at once: not before the test has looked
			<-seen
			return nil
		})
		a.Service = a.daemon(nil)
		if err := recovered(t.Context(), a.Service); err != nil {
			t.Fatal(err)
		}
		a.wantSnapshots(a.first)
		close(seen)
		a.end(bob, a.create(bob, nil).ID, none)
	}
}

// A requested check and a scheduled one of the same user run one after the other.
func TestRenewalAndACheckOnRequest(t *testing.T) {
	a := newRenewalRig(t, nil)
	at, goOn := a.block("check", nil)
	a.pass(hour)
	<-at
	asked := make(chan login.Outcome, 1)
	go func() {
		o, err := a.CheckDefault(context.Background(), alice, "alice")
		if err != nil {
			t.Error(err)
		}
		asked <- o
	}()
	goOn()
	if o := <-asked; *o.Version != 2 {
		t.Errorf("%+v", o)
	}
	at, goOn = a.block("check", nil)
	go func() { _, _ = a.CheckDefault(context.Background(), alice, "alice"); close(asked) }()
	<-at
	a.pass(2 * hour)
	a.awaitNextCheck()
	if n := a.meter.n("check logged_in"); n != 2 {
		t.Errorf("%d checks", n)
	}
	goOn()
	<-asked
}
