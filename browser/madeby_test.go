package browser

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/state"
)

// Data that a page's first script removes is blamed on the site, even if it was all the
// data. Data that is missing before that is blamed on the restore.
func TestWhoMadeADifference(t *testing.T) {
	r := newRig(t)
	site := newSite(t, map[string]string{"/once": `<script>localStorage.removeItem("only"); sessionStorage.removeItem("step")</script>`})
	url := site.url + "/once"
	b := r.fresh()
	r.open(b, url)
	r.eval(b, url, `localStorage.setItem("only", "1"); sessionStorage.setItem("step", "1"); 1`)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(t)); err != nil || doc.Datadir != state.DatadirClean {
		t.Fatalf("%s, %v", doc.Datadir, err)
	}
	for name, test := range map[string]struct {
		as             state.Datadir
		lose           []string
		local, session string
	}{
		"restored by Chrome": {state.DatadirClean, nil, state.BySite, state.BySite},
		"applied":            {state.DatadirLive, nil, state.BySite, state.BySite},
		// localStorage that is not on disk was never written, so the document's is applied.
		"lost": {state.DatadirClean, []string{"Local Storage", "Session Storage"}, state.BySite, state.ByRestore},
	} {
		d, doc := r.copyOf(b.dir), doc
		doc.Datadir = test.as
		if err := profile.Remove(d.Profile(), test.lose...); err != nil {
			t.Fatal(err)
		}
		again, report := r.restored(d, doc, Options{RestoreTabs: true})
		if got := r.eval(again, url, `localStorage.length + sessionStorage.length`); got != "0" {
			t.Fatalf("%s: the page still has %s", name, got)
		}
		v, err := again.Verify(within(t), doc, report)
		if err != nil {
			t.Fatal(err)
		}
		var reported []string
		for _, difference := range v.Differences {
			reported = append(reported, difference.Component+" by "+difference.By+" "+filepath.Join(difference.Names...))
		}
		slices.Sort(reported)
		if want := []string{"local_storage by " + test.local + " only", "session_storage by " + test.session + " step"}; !slices.Equal(reported, want) {
			t.Errorf("%s: %q, want %q", name, reported, want)
		}
		if err := again.Kill(within(t)); err != nil {
			t.Fatal(err)
		}
	}
}
