package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/profiletest"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
)

const newerTables = "../browser/profile/testdata/newer/"

// The table says of each way that a profile was left which copy a save takes into
// the snapshot's document, or leaves to the profile.
func TestNewerAtASave(t *testing.T) {
	r := newRig(t, nil)
	var rows []string
	for _, c := range profiletest.AllCopies() {
		if c.Part == state.ComponentTabs {
			continue // the restore decides
		}
		dir, err := r.newDir()
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir.Profile(), profile.Default)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		c.After(t, folder)
		doc, _ := r.survey(t.Context(), job{dir: dir, rec: profiles.Session{ID: "s"}}, c.Document())
		taken, told := c.Value(doc), len(doc.Missed) > 0
		if c.Part == state.ComponentSessionStorage && c.Left == state.DatadirClean && (len(doc.Unstored) == 0 || !doc.Unstored[0].Lay) {
			taken = c.OnDisk(t, folder)
		}
		told = told || len(doc.Unstored) > 0 || len(doc.Unwritten) > 0
		rows = append(rows, profiletest.Taken(c, taken, told, fmt.Sprint(doc.FromDisk)))
		r.clear(dir)
	}
	profiletest.Golden(t, newerTables+"save.txt", rows)
}

// The table says the same of a Chrome that died after its last reading.
func TestNewerAfterACrash(t *testing.T) {
	var rows []string
	for _, c := range profiletest.AllCopies() {
		if c.Left != state.DatadirCrash {
			continue
		}
		r := newRig(t, nil)
		id := r.create(alice, nil).ID
		chrome := r.browsers.last()
		chrome.reads = func(doc *state.Document) { *doc = c.Document() }
		dir := chrome.dir
		folder := filepath.Join(dir.Profile(), profile.Default)
		c.Before(t, folder)
		r.checkpoint(id, plain)
		c.After(t, folder)
		r.clock.add(profiletest.Now.Sub(r.clock.now()))
		rec, err := r.catalogue.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		doc, _ := r.left(t.Context(), job{rec: rec, dir: dir})
		taken := c.Value(doc)
		switch {
		case c.Part == state.ComponentTabs && doc.TabsOnDisk:
			taken = profiletest.Disk
		case c.Part == state.ComponentTabs:
			taken = profiletest.Read
		case taken == "" && (c.Part == state.ComponentLocalStorage || c.Part == state.ComponentSessionStorage && doc.TabsOnDisk):
			taken = c.OnDisk(t, folder)
		}
		doubted := slices.ContainsFunc(doc.Doubts, func(m state.Missed) bool { return m.Component == c.Part })
		rows = append(rows, profiletest.Taken(c, taken, doubted, ""))
	}
	profiletest.Golden(t, newerTables+"crash.txt", rows)
}
