package browser

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
)

// save captures a browser and closes it.
func (r *rig) save(b *Browser) state.Document {
	r.t.Helper()
	doc, err := b.Capture(within(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(r.t)); err != nil || doc.Datadir != state.DatadirClean {
		r.t.Fatalf("closed: %s, %v", doc.Datadir, err)
	}
	return doc
}

// restoredInSpare restores a closed browser's environment in a spare of the options' engine.
func (r *rig) restoredInSpare(from *Browser, doc state.Document, o Options) (*Browser, []state.Component) {
	r.t.Helper()
	p := r.spareOf(o.Engine)
	r.load(p, from)
	b, report, err := p.Restored(within(r.t), doc, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return b, report
}

// withoutVisibility removes the visibility of tabs: in the shell each tab is visible.
func withoutVisibility(look map[string]string) map[string]string {
	for path, got := range look {
		look[path] = got[:strings.LastIndex(got, "|")]
	}
	return look
}

// An environment is restored from full Chrome in the shell and back, with everything that
// its sites store. Each tab has its state before its first script. A tab that was closed
// in the shell is not restored from full Chrome's old session files.
func TestEnginesShareAnEnvironment(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/one": seen, "/two": seen, "/three": seen})
	b := r.fresh()
	r.fillTabs(b, s)
	r.open(b, s.url+"/three")
	r.eval(b, s.url+"/three", `window.name = "third"; 1`)
	r.front(b, s.url+"/one")
	doc := r.save(b)
	engines := []string{EngineShell, EngineShell, EngineChrome}
	if !long() {
		engines = engines[1:] // TestShellTakesAProfile restores in the shell what the shell saved
	}
	for i, engine := range engines {
		before := len(s.requests())
		var report []state.Component
		o := Options{RestoreTabs: true, Engine: engine}
		if i == 0 {
			b, report = r.restoredInSpare(b, doc, o)
		} else {
			b, report = r.restored(b.dir, doc, o)
		}
		if b.Engine() != engine {
			t.Errorf("the engine is %s", b.Engine())
		}
		want := maps.Clone(restoredTabs)
		got := r.readTabs(b, s)
		if engine == EngineShell {
			want, got = withoutVisibility(want), withoutVisibility(got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", engine, diff)
		}
		for path, want := range map[string]string{"/one": "l1|one|first", "/two": "l1|two|second"} {
			if got := r.eval(b, s.url+path, "window.seen"); got != want {
				t.Errorf("%s: the first script of %s saw %s, want %s", engine, path, got, want)
			}
		}
		for _, asked := range s.requests()[before:] {
			if !strings.Contains(asked, "session=s1") || !strings.Contains(asked, "kept=k1") {
				t.Errorf("%s: requests for %s", engine, asked)
			}
		}
		r.checkComplete(b, doc, report, len(doc.Tabs))
		for _, tab := range doc.Tabs { // changed by checkComplete
			r.eval(b, tab.URL, fmt.Sprintf(`window.name = %q; sessionStorage.setItem("step", %q); 1`, tab.Name, strings.TrimPrefix(tab.URL, s.url+"/")))
		}
		if pages, err := b.Pages(within(t)); err != nil || len(pages) != len(doc.Tabs) {
			t.Errorf("%s: %d tabs, %v; %d were saved", engine, len(pages), err, len(doc.Tabs))
		}
		if len(doc.Tabs) == 3 {
			if err := b.tabs.close(within(t), r.page(b, s.url+"/three")); err != nil {
				t.Fatal(err)
			}
		}
		doc = r.save(b)
		if doc.Chrome.Engine != engine || doc.TabsByURL != (engine == EngineShell) || len(doc.Tabs) != 2 {
			t.Errorf("saved by %s: %+v, by URL %t, %d tabs", engine, doc.Chrome, doc.TabsByURL, len(doc.Tabs))
		}
	}
}

// A screenshot during a navigation is taken again: Chrome does not answer the first.
func TestScreenshotDuringNavigation(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/one": seen, "/two": seen})
	b := r.shell()
	for _, path := range []string{"/one", "/two", "/one", "/two"} {
		went := make(chan error, 1)
		go func() {
			_, err := b.Navigate(within(t), s.url+path)
			went <- err
		}()
		if _, _, _, err := b.Screenshot(within(t)); err != nil {
			t.Error(err)
		}
		if err := <-went; err != nil {
			t.Error(err)
		}
	}
}
