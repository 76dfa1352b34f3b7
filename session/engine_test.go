package session

import (
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/state"
)

func inShell(c *request.Create) { c.Engine = browser.EngineShell }

// The create's engine comes first, then the user's, then the daemon's.
func TestEngineOfACreate(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Engine = browser.EngineShell })
	engine := func(change func(*request.Create)) string {
		t.Helper()
		info := r.create(alice, change)
		if r.browsers.last().Engine() != info.Engine {
			t.Errorf("%s runs, the session says %s", r.browsers.last().Engine(), info.Engine)
		}
		r.end(alice, info.ID, none)
		return info.Engine
	}
	if got := engine(nil); got != browser.EngineShell {
		t.Errorf("engine of the daemon: %s", got)
	}
	chrome := browser.EngineChrome
	_, err := r.ChangeSettings(t.Context(), alice, "alice", func(s settings.Settings) (settings.Settings, error) {
		s.Engine = &chrome
		return s, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := engine(nil); got != browser.EngineChrome {
		t.Errorf("engine of the user: %s", got)
	}
	if got := engine(inShell); got != browser.EngineShell {
		t.Errorf("engine of the create: %s", got)
	}
	_, err = r.Create(t.Context(), alice, newCreate(func(c *request.Create) { inShell(c); c.Extensions = []string{"none"} }))
	if !fault.Is(err, fault.Unsupported) || !strings.HasPrefix(fault.MessageOf(err), "extensions:") {
		t.Errorf("extensions in the shell: %v", err)
	}
	r.browsers.fails(fault.New(fault.Unsupported, "has", "engine: not installed"), "has")
	if _, err = r.Create(t.Context(), alice, newCreate(inShell)); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without the shell: %v", err)
	}
	if n := r.Counts().Live; n != 0 {
		t.Errorf("%d live", n)
	}
}

// An engine restores what the other saved, and the report says so. A parked Chrome serves
// only its own engine.
func TestEnginesRestoreEachOther(t *testing.T) {
	r := newRig(t, nil)
	_, snap := r.saved(alice, memoryDefault)
	info := r.create(alice, func(c *request.Create) { fromAlice(c); inShell(c) })
	if p := info.Restored; p.Path != restore.PathCold || p.FallbackReason == "" ||
		len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], browser.EngineChrome) {
		t.Errorf("%+v", p)
	}
	if o := r.browsers.last().options; o.Engine != browser.EngineShell {
		t.Errorf("options: %+v", o)
	}
	a := r.end(alice, info.ID, asDefault)
	if a.Snapshot.Engine != browser.EngineShell {
		t.Errorf("saved by %s", a.Snapshot.Engine)
	}
	r.wantSnapshots(snap, a.Snapshot.ID)
	back := r.create(alice, func(c *request.Create) { fromAlice(c); c.Engine = browser.EngineChrome })
	if p := back.Restored; back.Engine != browser.EngineChrome || len(p.Warnings) != 1 {
		t.Errorf("%s: %+v", back.Engine, p)
	}
	r.end(alice, back.ID, none)

	// Without a word about the engine, the environment stays in the one that saved it.
	// The user's setting, and what only full Chrome can do, take it out of it.
	if again := r.create(alice, fromAlice); again.Engine != browser.EngineShell || len(again.Restored.Warnings) != 0 {
		t.Errorf("%s: %+v", again.Engine, again.Restored)
	} else if a := r.end(alice, again.ID, memoryDefault); a.Snapshot.Engine != browser.EngineShell {
		t.Errorf("saved by %s", a.Snapshot.Engine)
	}
	if thawed := r.create(alice, fromAlice); thawed.Restored.Path != restore.PathParked || thawed.Restored.FallbackReason != "" {
		t.Errorf("a memory snapshot of the shell: %+v", thawed.Restored)
	} else {
		r.end(alice, thawed.ID, none)
	}
	chrome := browser.EngineChrome
	if _, err := r.ChangeSettings(t.Context(), alice, "alice", func(s settings.Settings) (settings.Settings, error) {
		s.Engine = &chrome
		return s, nil
	}); err != nil {
		t.Fatal(err)
	}
	if set := r.create(alice, fromAlice); set.Engine != browser.EngineChrome {
		t.Errorf("against the user's setting: %s", set.Engine)
	}
}

// The shell keeps session cookies only in memory, so the document has the only copy of
// them. It ignores session files; those of an earlier Chrome are not the tabs that were
// open.
func TestShellCrashKeepsSessionCookies(t *testing.T) {
	session := state.Cookie{Name: "s", Domain: "a.example", Path: "/", Session: true}
	gone := state.Cookie{Name: "g", Domain: "a.example", Path: "/", Expires: 4e9}
	for engine, want := range map[string]int{browser.EngineShell: 1, browser.EngineChrome: 0} {
		doc := state.Document{Complete: true, Datadir: state.DatadirClean, Chrome: state.Chrome{Engine: engine}, Cookies: []state.Cookie{session, gone}}
		if got := profile.Reconcile(profile.Copies{Document: doc, Found: inspect.Profile{Cookies: []state.Cookie{}}}).Jar; len(got) != want {
			t.Errorf("%s: %+v", engine, got)
		}
		if got := save.UnreadDocument(engine, time.Time{}).TabsByURL; got != (engine == browser.EngineShell) {
			t.Errorf("%s: tabs by URL %t", engine, got)
		}
	}
}
