package browser

import (
	"slices"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// A profile of a newer Chrome is not used. The document is applied to an empty profile.
// Without a complete document the restore is refused.
func TestProfileOfANewerChrome(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/one": seen, "/two": seen})
	b := r.fresh()
	r.fillTabs(b, s)
	r.eval(b, s.url+"/one", `new Promise(done => { indexedDB.open("left behind").onsuccess = () => done("made"); })`)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	kept := r.copied(b)
	doc.Chrome.Version = "999.0.1.2"

	unread := state.Document{SchemaVersion: state.SchemaVersion, Datadir: state.DatadirClean, Chrome: doc.Chrome}
	if _, _, err := r.Restored(within(t), kept, unread, Options{RestoreTabs: true}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without a complete document: %v", err)
	}

	again, report := r.restored(kept, doc, Options{RestoreTabs: true})
	got := r.readTabs(again, s)
	for path, want := range restoredTabs {
		if got[path] != want {
			t.Errorf("%s: %q, want %q", path, got[path], want)
		}
	}
	if names := r.eval(again, s.url+"/one", `indexedDB.databases().then(all => all.length)`); names != "0" {
		t.Errorf("the profile was used: %s databases", names)
	}
	if i := slices.IndexFunc(report, func(c state.Component) bool { return c.Name == state.ComponentTabs }); i < 0 || report[i].Restored != 2 {
		t.Errorf("report: %+v", report)
	}
}
