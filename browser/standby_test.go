package browser

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Chrome on standby has its environment loaded and has sent no request to its sites.
// After Activate everything is there as after any restore, and nothing else is open.
func TestStandby(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/one": seen, "/two": seen})
	b := r.fresh()
	r.fillTabs(b, s)
	doc := r.closed(b)
	for _, engine := range []string{EngineChrome, EngineShell} {
		before := len(s.requests())
		p, err := r.Standby(within(t), r.copied(b), doc, Options{Engine: engine, RestoreTabs: true})
		if err != nil {
			t.Fatal(err)
		}
		r.ends(p.b)
		if n := len(s.requests()); n != before {
			t.Errorf("%s: %d requests while on standby", engine, n-before)
		}
		b, report, err := p.Activate(within(t))
		if err != nil {
			t.Fatal(err)
		}
		got := r.readTabs(b, s)
		if engine == EngineShell { // in which all tabs are in front
			got["/two"] = strings.Replace(got["/two"], "visible", "hidden", 1)
		}
		if diff := cmp.Diff(restoredTabs, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", engine, diff)
		}
		asked := s.requests()[before:]
		slices.Sort(asked)
		if diff := cmp.Diff([]string{"/one session=s1; kept=k1", "/two session=s1; kept=k1"}, sortCookies(asked)); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", engine, diff)
		}
		if pages, err := b.Pages(within(t)); err != nil || len(pages) != 2 {
			t.Errorf("%s: it shows %+v, %v", engine, pages, err)
		}
		r.checkComplete(b, doc, report, 2)
	}
	// A standby that is not used leaves nothing behind.
	p, err := r.Standby(within(t), r.copied(b), doc, Options{Engine: EngineShell, RestoreTabs: true})
	if err != nil {
		t.Fatal(err)
	}
	before := len(s.requests())
	if err := p.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if n := len(s.requests()); n != before {
		t.Errorf("%d requests of a standby that was ended", n-before)
	}
}
