package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/profiletest"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/state"
)

// The table lists each state of a profile with the copy that a restore uses. It also says
// who is blamed for a difference from the document before a page has run. Package
// browser/profile has the table of everything that uses a copy.
func TestWhoIsBlamed(t *testing.T) {
	var rows []string
	for _, c := range profiletest.AllCopies() {
		for _, c.FromDisk = range []bool{false, true} {
			if c.FromDisk && (c.Datadir != state.DatadirClean || c.Part != state.ComponentCookies && c.Part != state.ComponentLocalStorage) {
				continue
			}
			rows = append(rows, restoreRow(t, c))
		}
	}
	profiletest.Golden(t, "testdata/madeby.txt", rows)
}

func restoreRow(t *testing.T, c profiletest.Copies) string {
	dir := &Dir{Path: t.TempDir()}
	folder := filepath.Join(dir.Profile(), profile.Default)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	c.After(t, folder)
	doc := c.Document()
	s, err := baseline.New(t.Context(), dir.Profile(), doc, nil, profiletest.Now)
	if err != nil {
		t.Fatal(err)
	}
	read := c.Datadir != state.DatadirClean
	var taken, by string
	switch c.Part {
	case state.ComponentCookies:
		read, taken, by = read || s.Broken.Cookies, c.Value(state.Document{Cookies: s.Found.Cookies}), s.DifferenceCause(doc, c.Part, s.Broken.Cookies)
	case state.ComponentLocalStorage:
		read, taken, by = c.ValueIn(s.RemainingAreas) != "", c.OnDisk(t, folder), s.DifferenceCause(doc, c.Part, s.Broken.LocalStorage)
	case state.ComponentSessionStorage:
		tab := doc.Tabs[0]
		read, taken = read || s.Broken.SessionStorage || s.Applies(tab.Session[0]), c.OnDisk(t, folder)
		if c.Datadir == state.DatadirClean {
			if by = state.ByRestore; len(s.SessionBefore(dir.Profile())(tab, tab.Session[0]).Items) > 0 {
				by = state.BySite
			}
		}
	case state.ComponentTabs:
		taken = map[restore.Source]string{restore.SourceProfile: profiletest.Disk, restore.SourceDocument: profiletest.Read, restore.SourceUnread: profiletest.Disk}[restore.SourceOf(doc, true)]
		read = false
	}
	if read {
		taken = profiletest.Read
	}
	if by != "" {
		by = "a difference is by " + by
	}
	return fmt.Sprintf("%s  %-11s %s", c, profiletest.Outcome(taken, len(s.Unstored) > 0), by)
}
