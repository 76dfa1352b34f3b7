package browser

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// The shell preserves data that it does not use: an extension with all its data.
// Meanwhile the service workers of sites work. For that the extension's workers must be
// hidden from the shell.
func TestExtensionSurvivesTheShell(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), keeperSite(t)
	s.pages["/sw.js"] = "self.onfetch = () => {};"
	dir := r.dir()
	e := r.installKeeper(dir, "1.0")
	o := Options{RestoreTabs: true, Extensions: []state.Extension{e}}
	b, err := r.Fresh(within(t), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	url := s.url + "/page"
	r.open(b, url)
	r.askKeeper(b, url, "keep")
	r.eval(b, url, `navigator.serviceWorker.register("/sw.js").then(() => navigator.serviceWorker.ready).then(() => 1)`)
	doc := r.save(b)

	o.Engine = EngineShell
	b, lines := r.restoredInSpare(b, doc, o)
	for _, name := range []string{state.ComponentExtensions, state.ComponentExtensionStorage} {
		if l := line(lines, name, e.Origin()); l.Dropped == 0 || l.Reason.Code != report.NotInShell {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if got := r.eval(b, url, `navigator.serviceWorker.getRegistrations().then(all => all.length + (document.documentElement.dataset.keeper || "")) `); got != "1" {
		t.Errorf("in the shell a page has %s registrations and extensions", got)
	}
	doc = r.save(b)

	o.Engine = EngineChrome
	b, lines = r.restored(b.dir, doc, o)
	if l := line(lines, state.ComponentExtensions, e.Origin()); l.Restored != 1 {
		t.Errorf("%+v", l)
	}
	await(t, "back in full Chrome the extension has its data", func() bool {
		return strings.HasPrefix(r.askKeeper(b, url, ""), keptAll+`"install ,startup with {`)
	})
	if got := r.eval(b, url, `navigator.serviceWorker.getRegistrations().then(all => all.length)`); got != "1" {
		t.Errorf("back in full Chrome the site has %s registrations", got)
	}
}
