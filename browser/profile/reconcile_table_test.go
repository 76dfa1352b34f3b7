package profile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/profiletest"
	"github.com/stasisd/stasis/state"
)

// The table lists each way in which a profile was left, and each copy that may be newer
// or damaged. It says which copy a save, a rescue after a crash and a restore take.
// "told" marks a doubt or a loss. A save takes the cookie jar and localStorage into its
// document. For sessionStorage, the table shows what a restore of the save does.
func TestReconcile(t *testing.T) {
	rows := []string{fmt.Sprintf("%-5s %-15s %-9s %-7s %-9s  %-11s  %-11s  %s", "left", "part", "profile", "damage", "document", "save", "crash", "restore")}
	for _, c := range profiletest.AllCopies() {
		for _, c.FromDisk = range []bool{false, true} {
			if c.FromDisk && (c.Datadir != state.DatadirClean || c.Part != state.ComponentCookies && c.Part != state.ComponentLocalStorage) {
				continue
			}
			save, crash := "-", "-"
			if !c.FromDisk && c.Part != state.ComponentTabs {
				save = saveTakes(t, c)
			}
			if c.Datadir == state.DatadirCrash {
				crash = crashTakes(t, c)
			}
			rows = append(rows, fmt.Sprintf("%s  %-11s  %-11s  %s", c, save, crash, restoreTakes(t, c)))
		}
	}
	profiletest.Golden(t, "testdata/reconcile.txt", rows)
}

// makeProfile returns a user data directory with the profile that Chrome left.
func makeProfile(t *testing.T, c profiletest.Copies) (userDataDir, folder string) {
	t.Helper()
	userDataDir = t.TempDir()
	folder = mkdir(t, userDataDir, Default)
	c.After(t, folder)
	return userDataDir, folder
}

func saveTakes(t *testing.T, c profiletest.Copies) string {
	userDataDir, folder := makeProfile(t, c)
	s, err := Inspect(t.Context(), userDataDir, c.Document())
	if err != nil {
		t.Fatal(err)
	}
	doc, taken := s.Document, c.Value(s.Document)
	if c.Part == state.ComponentSessionStorage && c.Datadir == state.DatadirClean && (len(doc.Unstored) == 0 || !doc.Unstored[0].Apply) {
		taken = c.OnDisk(t, folder)
	}
	return profiletest.Outcome(taken, len(doc.Missed)+len(doc.Unstored)+len(doc.Unwritten) > 0)
}

func crashTakes(t *testing.T, c profiletest.Copies) string {
	userDataDir, folder := makeProfile(t, c)
	doc, err := Merge(t.Context(), userDataDir, Reading{Document: c.Document(), From: profiletest.ReadAt, Until: profiletest.ReadUntil, Now: profiletest.Now,
		Files: func(context.Context, func(string) bool) (string, func(), error) {
			was := t.TempDir()
			c.Before(t, mkdir(t, was, Default))
			return was, func() {}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	taken := c.Value(doc)
	switch {
	case c.Part == state.ComponentTabs && doc.TabsOnDisk:
		taken = profiletest.Disk
	case c.Part == state.ComponentTabs:
		taken = profiletest.Read
	case taken == "" && (c.Part == state.ComponentLocalStorage || c.Part == state.ComponentSessionStorage && doc.TabsOnDisk):
		taken = c.OnDisk(t, folder)
	}
	return profiletest.Outcome(taken, slices.ContainsFunc(doc.Doubts, func(m state.Missed) bool { return m.Component == c.Part }))
}

func restoreTakes(t *testing.T, c profiletest.Copies) string {
	userDataDir, folder := makeProfile(t, c)
	doc := c.Document()
	found, err := inspect.Read(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Apply(t.Context(), userDataDir, doc, found, profiletest.Now)
	if err != nil {
		t.Fatal(err)
	}
	var fromDocument bool
	var onDisk string
	switch c.Part {
	case state.ComponentCookies:
		fromDocument, onDisk = a.Cookies == FromDocument, c.Value(state.Document{Cookies: found.Cookies})
	case state.ComponentLocalStorage:
		fromDocument, onDisk = c.ValueIn(a.RemainingAreas) != "", c.OnDisk(t, folder)
	case state.ComponentSessionStorage:
		fromDocument = c.Datadir != state.DatadirClean || a.Broken.SessionStorage || slices.ContainsFunc(a.Unstored, func(u state.Unstored) bool { return u.Apply })
		onDisk = c.OnDisk(t, folder)
	case state.ComponentTabs:
		fromDocument, onDisk = a.Tabs == FromDocument, profiletest.Disk
	}
	if fromDocument {
		onDisk = profiletest.Read
	}
	return profiletest.Outcome(onDisk, len(a.Unstored) > 0)
}

func mkdir(t *testing.T, dir, name string) string {
	t.Helper()
	folder := filepath.Join(dir, name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}
