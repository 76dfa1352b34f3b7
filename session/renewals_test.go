package session

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
)

// counter is a Meter that stores its counts.
type counter struct {
	mu  sync.Mutex
	all []string
}

func (c *counter) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, what)
}

func (c *counter) LoginChecked(v login.Verdict)     { c.note("check " + string(v)) }
func (c *counter) LoginExpired()                    { c.note("expired") }
func (c *counter) Saved(k save.Kind, r save.Result) { c.note(string(k) + " " + string(r)) }

func (c *counter) n(what string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		if s == what {
			n++
		}
	}
	return n
}

// renewalRig is a rig in which alice's default is checked each hour.
type renewalRig struct {
	*rig
	first string // the snapshot of her default
}

const hour = time.Hour

func newRenewalRig(t *testing.T, change func(*Config)) *renewalRig {
	t.Helper()
	a := &renewalRig{rig: newRig(t, change)}
	a.setCheck(false)
	a.setEvery(int64(hour / time.Second))
	id := a.create(alice, withWebhook).ID
	a.first = a.end(alice, id, asDefault).Snapshot.ID
	if err := recovered(t.Context(), a.Service); err != nil {
		t.Fatal(err)
	}
	return a
}

func (r *rig) setEvery(seconds int64) {
	r.t.Helper()
	if _, err := r.ChangeSettings(r.t.Context(), alice, "alice", func(set settings.Settings) (settings.Settings, error) {
		set.LoginCheck.CheckEverySeconds = &seconds
		return set, nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

// pass advances the clock and lets the renewals check what is due.
func (a *renewalRig) pass(d time.Duration) {
	a.clock.add(d)
	a.renewals.Wake()
}

// awaitChecks waits for n outcomes of checks, and until all checks have ended.
func (a *renewalRig) awaitChecks(what string, n int) {
	a.t.Helper()
	await(a.t, what, func() bool { return a.meter.n(what) == n })
	await(a.t, "the check has ended", a.idleAgain)
}

func (a *renewalRig) idleAgain() bool {
	return !a.sessions.Counts().Renewing
}

// awaitNextCheck waits until alice was checked and her next check is scheduled.
func (a *renewalRig) awaitNextCheck() {
	a.t.Helper()
	await(a.t, "alice was checked", func() bool {
		now := a.clock.now()
		_, due, _ := a.renewals.Next(now)
		return due.After(now)
	})
}

// checkedDefault is a default with its last check.
type checkedDefault struct {
	library.Default
	LastCheck *login.Outcome
}

func (a *renewalRig) current() checkedDefault {
	a.t.Helper()
	d, err := a.library.Default(a.t.Context(), alice, "alice")
	if err != nil {
		a.t.Fatal(err)
	}
	last, err := a.LastCheck(a.t.Context(), alice, "alice")
	if err != nil {
		a.t.Fatal(err)
	}
	return checkedDefault{d, last}
}

// A default that is unused for the interval is opened with its tabs, checked and saved
// again. A restarted daemon continues the schedule. Old renewals are removed.
func TestRenewal(t *testing.T) {
	a := newRenewalRig(t, nil)
	a.pass(hour * 8 / 10)
	a.awaitNextCheck()
	if n := len(a.browsers.all()); n != 1 {
		t.Fatalf("%d Chromes before it is due", n)
	}
	a.pass(hour * 2 / 10)
	a.awaitChecks("login_check saved", 1)
	chrome := a.browsers.last()
	if !chrome.options.RestoreTabs || !chrome.dead() || len(chrome.asked) != 1 || a.dirs() != 0 {
		t.Errorf("with tabs %t, dead %t, asked %d times, %d directories", chrome.options.RestoreTabs, chrome.dead(), len(chrome.asked), a.dirs())
	}
	await(t, "the check is recorded", func() bool { return a.current().LastCheck != nil })
	d := a.current()
	row, err := a.catalogue.Snapshot(t.Context(), d.SnapshotID)
	if err != nil || d.Version != 2 || !row.Auto || row.Rescue || *d.LastCheck.Version != 2 || *d.LastCheck.SnapshotID != d.SnapshotID || !d.LastCheck.LoggedIn {
		t.Errorf("%+v, %+v, %+v, %v", d, d.LastCheck, row, err)
	}
	a.wantSnapshots(a.first, d.SnapshotID)

	a.kill()
	a.Service = a.daemon(nil)
	if err := recovered(t.Context(), a.Service); err != nil {
		t.Fatal(err)
	}
	a.awaitNextCheck()
	if n := a.meter.n("check logged_in"); n != 1 {
		t.Errorf("%d checks after a restart", n)
	}
	a.changeReasonText(d.SessionID) // the code says whose record it is
	for n := range 4 {
		a.pass(hour)
		a.awaitChecks("login_check saved", n+2)
	}
	last := a.current()
	if last.Version != 6 || last.SessionID != d.SessionID {
		t.Errorf("%+v", last)
	}
	rec, err := a.Get(t.Context(), alice, last.SessionID)
	if err != nil || rec.Reason.Code != profiles.ReasonLoginCheck || rec.Status != profiles.StatusCompleted || rec.WebhookURL != hookURL {
		t.Errorf("%+v, %v", rec, err)
	}
	await(t, "three are left", func() bool { return len(a.autoCheckpoints(last.SessionID)) == 2+1 })
	a.wantSnapshots(append(a.autoCheckpoints(last.SessionID), a.first)...)
	// A user's session restores the renewal like any snapshot.
	a.end(alice, a.create(alice, fromAlice).ID, none)
}

// If the login is unchanged, nothing is saved.
func TestRenewalWithoutChange(t *testing.T) {
	a := newRenewalRig(t, nil)
	a.browsers.on("capture", func(c *fakeChrome) error {
		c.reads = func(doc *stateDocument) { doc.Cookies = c.restored.Cookies }
		return nil
	})
	a.pass(hour)
	a.awaitChecks("login_check unchanged", 1)
	await(t, "the check is recorded", func() bool { return a.current().LastCheck != nil })
	if d := a.current(); d.Version != 1 || *d.LastCheck.Version != 1 || a.dirs() != 0 {
		t.Errorf("%+v, %+v, %d directories", d, d.LastCheck, a.dirs())
	}
	a.wantSnapshots(a.first)
}

// A logged-out default stays, and one event reports it, whatever happens in between. A
// default that could not be judged also stays, and is tried again soon.
func TestRenewalOfALostLogin(t *testing.T) {
	a := newRenewalRig(t, nil)
	before := len(a.sentTo(hookURL))
	out := func(c *fakeChrome) error { c.loggedOut = true; return nil }
	broken := func(*fakeChrome) error { return fault.New(fault.BrowserFailed, "fake", "") }
	a.browsers.on("check", out)
	a.pass(hour)
	a.awaitChecks("check logged_out", 1)
	a.browsers.on("check", broken)
	a.pass(hour)
	a.awaitChecks("check failed", 1)
	a.pass(30 * time.Second)
	a.awaitChecks("check failed", 2)
	a.pass(30 * time.Second)
	a.awaitNextCheck()
	a.pass(30 * time.Second)
	a.awaitChecks("check failed", 3)
	await(t, "the check is recorded", func() bool { return a.current().LastCheck.Failures == 3 })
	if c := a.current().LastCheck; c.LoggedIn || c.Error == nil || c.LoggedOutSince == nil {
		t.Errorf("%+v", c)
	}
	a.browsers.on("check", out)
	a.pass(hour)
	a.awaitChecks("check logged_out", 2)
	if got := a.sentTo(hookURL)[before:]; !slices.Equal(got, []string{"user.login_expired completed"}) || a.meter.n("expired") != 1 {
		t.Errorf("sent %q, counted %d", got, a.meter.n("expired"))
	}
	if d := a.current(); d.Version != 1 || a.dirs() != 0 {
		t.Errorf("%+v, %d directories", d, a.dirs())
	}
	a.wantSnapshots(a.first)
	// The next version is reported again.
	id := a.create(alice, withWebhook).ID
	a.end(alice, id, asDefault)
	a.pass(hour)
	a.awaitChecks("check logged_out", 3)
	await(t, "the expiry is counted", func() bool { return a.meter.n("expired") == 2 })
}

// Nothing is checked while the environment is in use. The interval starts when the use
// ends.
func TestRenewalWaits(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(a *renewalRig) (end func())
		due   time.Duration // after the end
	}{
		"for a session of it": {func(a *renewalRig) func() {
			id := a.create(alice, fromAlice).ID
			return func() { a.end(alice, id, none) }
		}, hour},
		"for the session that made it": {func(a *renewalRig) func() {
			id := a.create(alice, nil).ID
			if _, err := a.Checkpoint(a.t.Context(), alice, id, request.Checkpoint{SaveAsDefault: true, Conflict: save.Overwrite}); err != nil {
				a.t.Fatal(err)
			}
			return func() { a.end(alice, id, none) }
		}, hour},
		"for a parked Chrome": {func(a *renewalRig) func() {
			parked := a.end(alice, a.create(alice, fromAlice).ID, memoryDefault).Snapshot.ID
			return func() {
				if err := a.capacity.DropParked(a.t.Context(), parked); err != nil {
					a.t.Error(err)
				}
			}
		}, time.Minute},
		"for memory": {func(a *renewalRig) func() {
			a.short.Store(true)
			return func() { a.short.Store(false) }
		}, 5 * time.Second},
		"for slots": {func(a *renewalRig) func() {
			var all []string
			for a.capacity.Free() > 1 {
				all = append(all, a.create(bob, nil).ID)
			}
			return func() { a.end(bob, all[0], none) }
		}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			a := newRenewalRig(t, func(c *Config) { c.MaxSessions = 3 })
			end := test.begin(a)
			before := a.current().Version
			a.pass(hour)
			a.awaitNextCheck()
			if n := a.meter.n("check logged_in"); n != 0 {
				t.Fatalf("%d checks", n)
			}
			a.browsers.works()
			end()
			if test.due == hour {
				a.pass(hour / 2)
				a.awaitNextCheck()
			}
			a.pass(test.due)
			a.awaitChecks("check logged_in", 1)
			if d := a.current(); d.Version != before+1 {
				t.Errorf("version %d", d.Version)
			}
		})
	}
}

// A clock that is set back does not stop the checks until it has caught up. Users are
// soon checked again, whatever was scheduled.
func TestRenewalsAfterTheClockWasSetBack(t *testing.T) {
	a := newRenewalRig(t, nil)
	a.pass(hour / 2)
	a.awaitNextCheck()
	a.pass(-5 * hour)
	a.awaitChecks("login_check saved", 1)
	a.awaitNextCheck()
}

// A check whose profile is damaged does not become the default. That holds for the first
// check of a default too, which makes the record of all later ones.
func TestRenewalDamaged(t *testing.T) {
	a := newRenewalRig(t, nil)
	a.browsers.on("close", func(c *fakeChrome) error {
		a.damageCookies(c)
		return nil
	})
	a.pass(hour)
	a.awaitChecks("login_check unchanged", 1)
	a.browsers.works()
	if d := a.current(); d.SnapshotID != a.first || d.Version != 1 {
		t.Errorf("the damaged profile is the default: %+v", d)
	}
	a.wantSnapshots(a.first)
}
