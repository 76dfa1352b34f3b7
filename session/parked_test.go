package session

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

var memoryDefault = request.End{Mode: save.Memory, SaveAsDefault: true, Conflict: save.Keep}

// A memory snapshot has one ID and two restore paths: the parked Chrome, once, and its
// files for all others, with the reason in the report.
func TestMemory(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	chrome := r.browsers.last()
	a := r.end(alice, id, memoryDefault)
	if a.Snapshot.Mode != "memory" || a.Snapshot.Datadir != "live" {
		t.Errorf("%+v", a.Snapshot)
	}
	if chrome.dead() || !chrome.Frozen() || r.Counts() != (Counts{Parked: 1}) || r.dirs() != 1 {
		t.Errorf("dead %t, frozen %t, %+v, %d directories", chrome.dead(), chrome.Frozen(), r.Counts(), r.dirs())
	}
	r.wantSnapshots(a.Snapshot.ID)

	first := r.create(alice, fromAlice)
	if p := first.Restored; p.Path != restore.PathParked || p.Mode != "memory" || p.RequestedMode != "memory" || p.FallbackReason != "" ||
		p.Verification == restore.VerificationMismatch || p.Components[0].Restored != 1 {
		t.Errorf("%+v", p)
	}
	if r.browsers.last() != chrome || chrome.Frozen() || r.Counts() != (Counts{Live: 1}) {
		t.Errorf("another Chrome %t, frozen %t, %+v", r.browsers.last() != chrome, chrome.Frozen(), r.Counts())
	}
	second := r.create(alice, fromAlice)
	if p := second.Restored; p.Path != restore.PathCold || p.Mode != "filesystem" || p.RequestedMode != "memory" ||
		!strings.Contains(p.FallbackReason, "served") {
		t.Errorf("%+v", p)
	}
	if doc := r.browsers.last().restored; doc.Datadir != state.DatadirLive || !doc.Complete {
		t.Errorf("restored from %s, complete %t", doc.Datadir, doc.Complete)
	}
	// The thawed session is saved to another snapshot.
	next := r.end(alice, first.ID, memoryDefault)
	if !next.Default.Moved {
		t.Errorf("%+v", next.Default)
	}
	r.end(alice, second.ID, none)
	r.wantSnapshots(a.Snapshot.ID, next.Snapshot.ID)
}

// A thawed Chrome is verified too, after the answer, against what was read before it was
// frozen. What it lost is reported.
func TestThawedIsVerified(t *testing.T) {
	r := newRig(t, nil)
	_, snap := r.saved(alice, memory)
	chrome := r.browsers.last()
	proceed := make(chan struct{})
	r.browsers.on("verify", func(*fakeChrome) error { <-proceed; return nil })
	expired := state.Component{Name: state.ComponentCookies, Origin: "a.example", Saved: 1, Expired: 1}
	dead := state.Difference{Component: state.ComponentTabs, By: state.ByRestore, Missing: 1, Names: []string{"https://a.example/"}}
	chrome.found = state.Verification{Components: []state.Component{expired}, Differences: []state.Difference{dead}}
	info := r.create(alice, func(c *request.Create) { c.FromEnvironment = snap })
	if p := info.Restored; p.Path != restore.PathParked || p.Verification != restore.VerificationPending || p.Components[0].Restored != 1 {
		t.Errorf("before the verification: %+v", p)
	}
	close(proceed)
	var report restore.Report
	await(t, "verification", func() (over bool) {
		var err error
		report, err = r.RestoreReport(t.Context(), alice, info.ID)
		return err == nil && report.Verification != restore.VerificationPending
	})
	if report.Verification != restore.VerificationMismatch || report.Components[0] != expired ||
		!strings.Contains(strings.Join(report.Warnings, "\n"), "https://a.example/") {
		t.Errorf("%+v", report)
	}
	if c := chrome.compared; !c.Complete || len(c.Cookies) != 1 {
		t.Errorf("compared with %+v", c)
	}
}

// A restore that could not be verified says so. Otherwise its report would stay pending
// without a reason.
func TestUnverifiedIsReported(t *testing.T) {
	r := newRig(t, nil)
	_, snap := r.saved(alice, filesystem)
	r.browsers.on("verify", func(*fakeChrome) error { return errors.New("no answer") })
	info := r.create(alice, func(c *request.Create) { c.FromEnvironment = snap })
	await(t, "the warning", func() bool {
		report, err := r.RestoreReport(t.Context(), alice, info.ID)
		return err == nil && report.Verification == restore.VerificationPending && strings.Contains(strings.Join(report.Warnings, "\n"), "could not be verified")
	})
}

// Whatever happens to the parked Chrome, the files are restored instead, and the report
// says why.
func TestParkedChromeCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		size   int
		before func(*rig, *fakeChrome)
		ask    func(*request.Create)
		reason string
		kept   int // parked Chromes afterwards
	}{
		"restore_tabs is false": {2, nil, func(c *request.Create) { c.RestoreTabs = false }, "restore_tabs", 1},
		"evicted":               {1, func(r *rig, _ *fakeChrome) { r.saved(alice, memory) }, nil, "evicted", 1},
		"died":                  {2, func(_ *rig, c *fakeChrome) { c.die() }, nil, "", 0},
		"does not thaw": {2, func(r *rig, _ *fakeChrome) {
			r.browsers.fails(fault.New(fault.BrowserFailed, "fake", ""), "thaw")
		}, nil, "thawed", 0},
		"no parking": {0, nil, nil, "parked", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Parked.Size = test.size })
			_, snap := r.saved(alice, memory)
			chrome := r.browsers.last()
			if test.before != nil {
				test.before(r, chrome)
			}
			if name == "died" {
				await(t, "the pool removes it", func() bool { return r.Counts().Parked == 0 && r.dirs() == 0 })
			}
			info := r.create(alice, func(c *request.Create) {
				c.FromEnvironment = snap
				if test.ask != nil {
					test.ask(c)
				}
			})
			p := info.Restored
			if p.Path != restore.PathCold || p.Mode != "filesystem" || p.RequestedMode != "memory" || p.FallbackReason == "" ||
				!strings.Contains(p.FallbackReason, test.reason) {
				t.Errorf("%+v", p)
			}
			if r.browsers.last() == chrome || r.Counts().Parked != test.kept {
				t.Errorf("the same Chrome %t, %d parked", r.browsers.last() == chrome, r.Counts().Parked)
			}
			if r.dirs() != 1+test.kept {
				t.Errorf("%d run directories", r.dirs())
			}
		})
	}
	t.Run("enable_memory_snapshot is false", func(t *testing.T) {
		r := newRig(t, nil)
		_, snap := r.saved(alice, memory)
		info := r.create(alice, func(c *request.Create) { c.FromEnvironment, c.AllowMemory = snap, false })
		if p := info.Restored; p.Path != restore.PathCold || p.RequestedMode != "filesystem" || p.FallbackReason != "" {
			t.Errorf("%+v", p)
		}
		if r.Counts().Parked != 1 {
			t.Error("the parked Chrome is gone")
		}
	})
}

// If memory is short, a session that needs a new Chrome gets the memory of parked ones,
// oldest first, and no more than it needs. Their files stay.
func TestParkedChromesGiveWay(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Parked.Size = 3 })
	r.memoryAllows = func() bool { return !r.short.Load() || r.Counts().Parked < 2 }
	_, one := r.saved(alice, memory)
	oldest := r.browsers.last()
	_, two := r.saved(alice, memory)
	r.short.Store(true)
	r.create(alice, nil)
	if !oldest.dead() || r.Counts().Parked != 1 {
		t.Errorf("dead %t, %d parked", oldest.dead(), r.Counts().Parked)
	}
	for snap, path := range map[string]string{one: restore.PathCold, two: restore.PathParked} {
		p := r.create(alice, func(c *request.Create) { c.FromEnvironment = snap }).Restored
		if named := strings.Contains(p.FallbackReason, "memory was short"); p.Path != path || named != (path == restore.PathCold) {
			t.Errorf("%+v", p)
		}
	}
	r.wantSnapshots(one, two)
}

// A Chrome that needs more memory than parked ones may use is ended. Its files stay.
func TestParkedChromeTooLarge(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Parked.Memory = 100 })
	id := r.create(alice, nil).ID
	r.browsers.last().memory = 101
	r.end(alice, id, memoryDefault)
	await(t, "the Chrome has gone", func() bool { return r.Counts().Parked == 0 && r.dirs() == 0 })
	if p := r.create(alice, fromAlice).Restored; p.Path != restore.PathCold || !strings.Contains(p.FallbackReason, "more memory than they may") {
		t.Errorf("%+v", p)
	}
}

// A Chrome gives memory back before it is parked, while it can still run.
func TestTrimBeforeFreeze(t *testing.T) {
	r := newRig(t, nil)
	var trimmed atomic.Int32
	r.browsers.on("trim", func(*fakeChrome) error { trimmed.Add(1); return nil })
	r.browsers.on("freeze", func(*fakeChrome) error {
		if trimmed.Load() != 1 {
			t.Errorf("Chrome was trimmed %d times before the freeze", trimmed.Load())
		}
		return nil
	})
	r.saved(alice, memory)
	r.saved(alice, filesystem)
	if trimmed.Load() != 1 {
		t.Error("a Chrome that is closed was trimmed")
	}
}

// Deleting a snapshot ends its parked Chrome. Close ends all parked Chromes.
func TestParkedChromesEnd(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Parked = pool.Limits{Size: 3, Age: soon * 1000} })
	_, one := r.saved(alice, memory)
	first := r.browsers.last()
	_, two := r.saved(alice, memory)
	if err := r.library.DeleteSnapshot(t.Context(), alice, one); err != nil {
		t.Fatal(err)
	}
	if !first.dead() || r.Counts().Parked != 1 || r.dirs() != 1 {
		t.Errorf("dead %t, %d parked, %d directories", first.dead(), r.Counts().Parked, r.dirs())
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.dirs() != 0 {
		t.Errorf("%d directories after Close", r.dirs())
	}
	// The files outlive the daemon.
	next := r.daemon(nil)
	info, err := next.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromEnvironment = two }))
	if err != nil {
		t.Fatal(err)
	}
	if p := info.Restored; p.Path != restore.PathCold || !strings.Contains(p.FallbackReason, "daemon") {
		t.Errorf("%+v", p)
	}
	r.wantSnapshots(two)
}

// late is a client whose connection is so slow that the session ends meanwhile. closed
// receives its close code.
type late struct {
	client
	closed chan int
}

func (l late) Close(code int, _ string) error { l.closed <- code; return nil }

// A client admitted to a session that then ended does not reach the next session of the
// same Chrome.
func TestLateClient(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	chrome := r.browsers.last()
	coming, come := make(chan struct{}), make(chan struct{})
	r.browsers.on("serve", func(*fakeChrome) error { close(coming); <-come; return nil })
	c, served := late{client{make(chan struct{})}, make(chan int, 1)}, make(chan error, 1)
	go func() { served <- r.Connect(context.Background(), alice, id, Client{}, c) }()
	<-coming
	r.end(alice, id, memoryDefault)
	next := r.create(alice, fromAlice).ID
	if r.browsers.last() != chrome {
		t.Fatal("the second session has another Chrome")
	}
	close(come)
	if code := <-c.closed; code != mux.CloseSessionEnded {
		t.Errorf("closed with %d", code)
	}
	if err := <-served; err != nil {
		t.Errorf("Connect: %v", err)
	}
	r.browsers.works()
	r.attach(next)()
}
