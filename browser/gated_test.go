package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/gate"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// A running Chrome accepts a profile as if it had started with it, including the files
// that it opens at its start. What it has written by its end is complete, for the next
// Chrome. The settings of the environment are merged.
func TestGatesTakeAProfile(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newSite(t, map[string]string{
		"/sw.js": `self.onfetch = (e) => { if (e.request.url.endsWith("/from-worker")) e.respondWith(new Response("worker")); };
			self.onactivate = (e) => e.waitUntil(clients.claim());`})
	url := s.url + "/page"
	b := r.fresh()
	r.open(b, url)
	r.eval(b, url, keeps)
	doc := r.save(b)
	visits := 0
	for i := range 3 {
		p := r.spare()
		r.load(p, b)
		if i == 0 {
			r.addSettings(p)
		}
		restored, lines, err := p.Restored(within(t), doc, Options{RestoreTabs: true})
		if err != nil {
			t.Fatal(err)
		}
		if b = restored; !b.entered {
			t.Fatalf("Chrome opened a profile: %s", b.SecondProfileReason())
		}
		if got := r.eval(b, url, kept); got != keptAllOfIt {
			t.Errorf("round %d: %s", i, got)
		}
		if got := line(lines, state.ComponentPreferences, ""); got.Restored != 1 || got.Reason.Code != report.MergedAtSaves {
			t.Errorf("round %d: %+v", i, got)
		}
		found, err := b.Verify(within(t), doc, lines)
		if err != nil || len(found.Differences) != 0 {
			t.Errorf("round %d: %+v, %v", i, found, err)
		}
		r.eval(b, url, `localStorage.mark += ""; 1`)
		r.open(b, fmt.Sprint(s.url, "/more", i))
		doc = r.save(b)
		held, _ := r.inventory(b.dir).Inventory.Of(state.ComponentVisited, "")
		if held.Items <= visits {
			t.Errorf("round %d: the history has %d addresses, before %d", i, held.Items, visits)
		}
		visits = held.Items
	}
	var saved struct {
		Sessions map[string]any
	}
	files, err := b.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(files, func(f profile.File) bool { return f.Name == "Default/Preferences" })
	if at < 0 || json.Unmarshal(files[at].Data, &saved) != nil || saved.Sessions["mine"] == nil {
		t.Errorf("after three saves the environment has lost its setting: %v", saved.Sessions)
	}
}

// addSettings adds a setting that no page can notice to the environment that waits for a
// spare.
func (r *rig) addSettings(p *Spare) {
	r.t.Helper()
	file := filepath.Join(p.Dir().Profile(), "Default", "Preferences")
	raw, err := os.ReadFile(file)
	settings := map[string]any{}
	if err == nil {
		err = json.Unmarshal(raw, &settings)
	}
	sessions, _ := settings["sessions"].(map[string]any)
	if err != nil || sessions == nil {
		r.t.Fatalf("%v: %s", err, raw)
	}
	sessions["mine"] = 1
	if raw, err = json.Marshal(settings); err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// A Chrome that opens a file before the environment is there is not used: one of the two
// files would be lost. From then on Chromes start without gates.
func TestGateIsMissing(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newSite(t, nil)
	b := r.fresh()
	r.open(b, s.url+"/page")
	r.eval(b, s.url+"/page", `localStorage.mark = 1; 1`)
	doc := r.save(b)
	settings := r.settings.Load()
	names := gate.Chrome().Names()
	if !long() {
		names = names[:2]
	}
	for _, name := range names {
		r.settings.Store(settings)
		r.noGates.Store(nil)
		p := r.spareWithout(name)
		r.load(p, b)
		_, _, err := p.Restored(within(t), doc, Options{RestoreTabs: true})
		if !fault.Is(err, fault.BrowserFailed) {
			t.Errorf("%s: %v", name, err)
		}
		<-p.Done()
		next := r.spare()
		r.load(next, b)
		again, _, err := next.Restored(within(t), doc, Options{RestoreTabs: true})
		if err != nil {
			t.Fatal(err)
		}
		if again.entered || !strings.Contains(again.SecondProfileReason(), "no Chrome can wait") {
			t.Errorf("%s: the next Chrome has gates again; %q", name, again.SecondProfileReason())
		}
	}
}

// spareWithout starts a spare that lacks a gate.
func (r *rig) spareWithout(name string) *Spare {
	r.t.Helper()
	dir := r.dir()
	prep := preparation(dir, state.Document{}, Options{}, nil)
	prep.Folder = profile.Spare
	_, err := prepareGated(within(r.t), dir, prep, *r.settings.Load())
	if err == nil {
		err = os.Remove(filepath.Join(dir.Profile(), profile.Spare, name))
	}
	if err == nil {
		err = dir.Chown()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := r.start(within(r.t), dir, profile.Spare, Options{}, true)
	if err != nil {
		r.t.Fatal(err)
	}
	return &Spare{starter: r.Starter, b: r.ends(b), gated: true}
}

// Whatever Chrome reads only when it opens a profile makes it open the environment as one.
func TestNeedsProfile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.fresh()
	doc := r.save(b)
	for name, test := range map[string]struct {
		change func(*state.Document, *Options, map[string]any)
		want   string
	}{
		"nothing": {func(*state.Document, *Options, map[string]any) {}, ""},
		"zoom": {func(_ *state.Document, _ *Options, prefs map[string]any) {
			prefs["partition"] = map[string]any{"per_host_zoom_levels": map[string]any{"x": map[string]any{"a.test": map[string]any{"zoom_level": 1}}}}
		}, "zoom levels"},
		"settings of sites": {func(_ *state.Document, _ *Options, prefs map[string]any) {
			profile, _ := prefs["profile"].(map[string]any)
			profile["content_settings"] = map[string]any{"exceptions": map[string]any{"javascript": map[string]any{"https://a.test,*": map[string]any{"setting": 2}}}}
		}, "settings of sites"},
		"fonts": {func(_ *state.Document, _ *Options, prefs map[string]any) {
			prefs["webkit"] = map[string]any{"webprefs": map[string]any{"default_font_size": 20}}
		}, "webkit.webprefs.default_font_size"},
		"languages":    {func(_ *state.Document, o *Options, _ map[string]any) { o.Overrides.Locale = "de-DE" }, "languages"},
		"unread tabs":  {func(doc *state.Document, _ *Options, _ map[string]any) { doc.Complete = false }, "session files"},
		"newer Chrome": {func(doc *state.Document, _ *Options, _ map[string]any) { doc.Chrome.Version = "999.0.0.0" }, "newer Chrome"},
	} {
		doc, o := doc, Options{RestoreTabs: true}
		p := r.spare()
		r.load(p, b)
		file := filepath.Join(p.Dir().Profile(), "Default", "Preferences")
		prefs := map[string]any{}
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &prefs)
		}
		if err == nil {
			test.change(&doc, &o, prefs)
			raw, err = json.Marshal(prefs)
		}
		if err == nil {
			err = os.WriteFile(file, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		restored, _, err := p.Restored(within(t), doc, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if why := restored.SecondProfileReason(); !strings.Contains(why, test.want) || (why == "") != (test.want == "") || restored.entered != (why == "") {
			t.Errorf("%s: %q, want %q", name, why, test.want)
		}
		if err := restored.Kill(within(t)); err != nil {
			t.Fatal(err)
		}
	}
}
