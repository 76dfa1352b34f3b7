package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/settings"
)

// A crash just after a limit was reached has the limit as its reason, and the event is in the
// run. So has a crash after too many restarts.
func TestCrashAtALimit(t *testing.T) {
	for limit, reason := range map[browser.Reached]profiles.ReasonCode{
		{Limit: browser.LimitMemory, Value: 64 << 20}: profiles.ReasonMemoryLimit,
		{Limit: browser.LimitProcesses, Value: 300}:   profiles.ReasonTaskLimit,
	} {
		r := newRig(t, nil)
		id := r.create(alice, nil).ID
		r.browsers.last().reached = []browser.Reached{limit}
		r.browsers.last().die()
		if rec := r.ended(id); rec.Status != profiles.StatusError || rec.Reason.Code != reason || !strings.Contains(rec.Reason.Text, limit.Limit) {
			t.Errorf("%s, %+v", rec.Status, rec.Reason)
		}
		if got := r.history(id); !slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, "limit_reached") }) {
			t.Errorf("%q", got)
		}

		id = r.create(alice, onCrash).ID
		for range maxRestarts {
			r.browsers.last().reached = []browser.Reached{limit}
			r.crashChrome(id)
		}
		r.browsers.last().reached = []browser.Reached{limit}
		r.browsers.last().die()
		if rec := r.ended(id); rec.Reason.Code != reason || !strings.Contains(rec.Reason.Text, "3 restarts") {
			t.Errorf("after restarts: %+v", rec.Reason)
		}
	}
}

// A session that fills the disk ends without a save, also one that is always saved. What was
// saved before is kept.
func TestDiskLimit(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits.Disk = 100 << 20 })
	_, old := r.saved(alice, asDefault)
	id := r.create(alice, func(c *request.Create) { fromAlice(c); c.Persist = true }).ID
	r.browsers.last().full <- struct{}{}
	if rec := r.ended(id); rec.Status != profiles.StatusError || rec.Reason.Code != profiles.ReasonDiskLimit || !strings.Contains(rec.Reason.Text, "100 MiB") {
		t.Errorf("%s, %+v", rec.Status, rec.Reason)
	} else if o := string(rec.Outcome); !strings.Contains(o, `"success":false`) || !strings.Contains(o, "nothing was saved: the session's files took more of the disk than its limit, 100 MiB") {
		t.Errorf("outcome %s", o)
	}
	r.wantSnapshots(old)
	if d, err := r.library.Default(t.Context(), alice, "alice"); err != nil || d.SnapshotID != old {
		t.Errorf("default %+v, %v", d, err)
	}
}

// wantMessage checks what the client is shown of an error.
func wantMessage(t *testing.T, err error, message string) {
	t.Helper()
	if got := fault.MessageOf(err); got != message {
		t.Errorf("got  %s\nwant %s", got, message)
	}
}

// A create asks for less than the user has, and a user's settings for less than the daemon
// allows.
func TestLimitsOfCreates(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits = browser.Limits{Memory: 4 << 30, Processes: 4096} })
	limits := func() browser.Limits { return r.browsers.last().options.Limits }
	id := r.create(alice, nil).ID
	if got, want := limits(), (browser.Limits{Memory: 4 << 30, Processes: 4096}); got != want {
		t.Errorf("the daemon's: %+v", got)
	}
	r.end(alice, id, none)

	change := func(l settings.Limits) error {
		_, err := r.ChangeSettings(t.Context(), admin, "alice",
			func(s settings.Settings) (settings.Settings, error) { s.Limits = &l; return s, nil })
		return err
	}
	memory, processors := int64(2<<30), 1.5
	if err := change(settings.Limits{Memory: &memory}); err != nil {
		t.Fatal(err)
	}
	id = r.create(alice, func(c *request.Create) { c.Limits = browser.Limits{Processes: 512, Disk: 1 << 30} }).ID
	if got, want := limits(), (browser.Limits{Memory: 2 << 30, Processes: 512, Disk: 1 << 30}); got != want {
		t.Errorf("the lowest of three: %+v", got)
	}
	r.end(alice, id, filesystem)
	if _, err := r.resumes(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	if got, want := limits(), (browser.Limits{Memory: 2 << 30, Processes: 512, Disk: 1 << 30}); got != want {
		t.Errorf("resumed: %+v", got)
	}
	r.end(alice, id, none)
	_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.Limits.Memory = 3 << 30 }))
	wantCode(t, err, fault.InvalidField)
	wantMessage(t, err, "limits.memory_bytes: must be at most 2147483648, the limit in the user's settings")
	_, err = r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.Limits.Processes = 5000 }))
	wantMessage(t, err, "limits.processes: must be at most 4096, the daemon's limit of each session")
	_, err = r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.Limits.Disk = 1 << 60 }))
	wantMessage(t, err, "limits.disk_bytes: must be at most 1125899906842624")
	_, err = r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.Limits.CPUs = 1 }))
	wantCode(t, err, fault.Unsupported)
	more := int64(8 << 30)
	wantCode(t, change(settings.Limits{Memory: &more}), fault.InvalidField)
	if err := change(settings.Limits{CPUs: &processors}); err != nil {
		t.Fatal(err)
	}
	_, err = r.Create(t.Context(), alice, newCreate(nil))
	wantCode(t, err, fault.Unsupported)
}

// A limit that was lowered after a session was created does not keep it from being resumed. It
// has the lower limit then.
func TestResumeAfterLowerLimits(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits.Memory = 4 << 30 })
	id := r.create(alice, func(c *request.Create) { c.Limits.Memory = 3 << 30 }).ID
	r.end(alice, id, filesystem)
	memory := int64(2 << 30)
	if _, err := r.ChangeSettings(t.Context(), admin, "alice", func(s settings.Settings) (settings.Settings, error) {
		s.Limits = &settings.Limits{Memory: &memory}
		return s, nil
	}); err != nil {
		t.Fatal(err)
	}
	more := newCreate(func(c *request.Create) { c.SessionID, c.Resume, c.Limits.Memory = id, true, 3<<30 })
	_, err := r.Create(t.Context(), alice, more.Given([]string{"limits"}))
	wantCode(t, err, fault.InvalidField)
	if _, err := r.resumes(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	if got := r.browsers.last().options.Limits.Memory; got != 2<<30 {
		t.Errorf("resumed with %d bytes", got)
	}
}

// A session with a limit that the daemon can no longer put in place can be resumed.
func TestResumeWithoutControlGroups(t *testing.T) {
	r := newRig(t, nil)
	r.browsers.processors = true
	id := r.create(alice, func(c *request.Create) { c.Limits.CPUs = 1 }).ID
	r.end(alice, id, filesystem)
	r.browsers.processors = false
	if _, err := r.resumes(t.Context(), alice, id); err != nil {
		t.Error(err)
	}
}
