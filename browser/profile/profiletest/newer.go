package profiletest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/state"
)

// These values name the two copies of one thing: the reading over CDP, and the profile's.
const (
	Read = "read"
	Disk = "disk"
	Was  = "was" // what the profile had at the start of the reading
)

// ReadAt is when the reading began, ReadUntil when it ended, and Now when the copies are
// compared.
var (
	ReadAt    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ReadUntil = ReadAt.Add(100 * time.Millisecond)
	Now       = ReadAt.Add(2 * time.Hour)
)

// Copies describes two copies of one part of an environment, of which one is newer.
type Copies struct {
	Datadir state.Datadir // how the files were left
	Part    string        // a component of reports
	Profile string        // what the profile has: a key of profiles
	Damage  string        // "", "damaged", "cut" or "unread"
	// FromDisk: the document's own copy was read from this profile.
	FromDisk bool
}

// profiles lists what a profile may have: the value, and when it was written, relative to
// the start of the reading.
var profiles = map[string]struct {
	value   string
	written time.Duration
}{
	"same":      {Read, -time.Hour},
	"older":     {Disk, -time.Hour},
	"meanwhile": {Disk, 50 * time.Millisecond},
	"just then": {Disk, time.Second},
	"newer":     {Disk, time.Hour},
	"absent":    {}, // there is no such file
	"lacking":   {"", -time.Hour},
	"lost":      {"", time.Hour}, // the file was written since, without the value
}

var files = map[string]string{state.ComponentCookies: "Cookies", state.ComponentLocalStorage: localstorage.Folder,
	state.ComponentSessionStorage: sessionstorage.Folder, state.ComponentTabs: "Sessions"}

const (
	origin = "https://a.example/"
	domain = "a.example"
)

// AllCopies returns every possible combination.
func AllCopies() (all []Copies) {
	for _, datadir := range []state.Datadir{state.DatadirClean, state.DatadirLive, state.DatadirCrash} {
		for _, part := range []string{state.ComponentCookies, state.ComponentLocalStorage, state.ComponentSessionStorage, state.ComponentTabs} {
			for _, has := range []string{"same", "older", "meanwhile", "just then", "newer", "absent", "lacking", "lost"} {
				damages := []string{""}
				if has == "older" || has == "newer" {
					damages = append(damages, map[string][]string{state.ComponentCookies: {"damaged", "unread"}, state.ComponentLocalStorage: {"damaged", "cut"},
						state.ComponentSessionStorage: {"damaged", "cut"}}[part]...)
				}
				for _, damage := range damages {
					all = append(all, Copies{Datadir: datadir, Part: part, Profile: has, Damage: damage})
				}
			}
		}
	}
	return all
}

// String returns the row's name in a table.
func (c Copies) String() string {
	from := ""
	if c.FromDisk {
		from = "from disk"
	}
	return fmt.Sprintf("%-5s %-15s %-9s %-7s %-9s", c.Datadir, c.Part, c.Profile, c.Damage, from)
}

// Document returns the reading. It is complete, and contains only the part.
func (c Copies) Document() state.Document {
	doc := state.Document{SchemaVersion: state.SchemaVersion, Complete: true, Datadir: c.Datadir, CapturedAt: ReadAt, ReadUntil: ReadUntil,
		Chrome: state.Chrome{Version: "156.0.8078.79", Engine: "chrome"}, Cookies: []state.Cookie{}, Local: []state.Area{}, Tabs: []state.Tab{}}
	switch c.Part {
	case state.ComponentCookies:
		doc.Cookies = []state.Cookie{cookie(Read)}
	case state.ComponentLocalStorage:
		doc.Local = []state.Area{area(Read)}
		if c.Profile != "absent" && c.Profile != "lacking" {
			// The files had the value at the time of the reading.
			doc.Inventory = state.Inventory{{Component: state.ComponentLocalStorage, Origin: origin, Items: 1}}
		}
	case state.ComponentSessionStorage:
		doc.Tabs = []state.Tab{{URL: origin, Active: true, Session: []state.Area{area(Read)}}}
	case state.ComponentTabs:
		doc.Tabs = []state.Tab{{URL: "https://" + Read + ".example/", Active: true}}
	}
	if c.FromDisk {
		doc.FromDisk = []string{c.Part}
	}
	return doc
}

// Before writes into a folder what the profile had when the reading began.
func (c Copies) Before(t testing.TB, folder string) {
	t.Helper()
	value := Was
	if has := profiles[c.Profile]; has.written < 0 {
		value = has.value
	}
	if c.Profile != "absent" {
		c.write(Profile{t, folder}, value, ReadAt.Add(-time.Hour))
	}
}

// After writes into a folder what the profile has when the copies are compared.
func (c Copies) After(t testing.TB, folder string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(folder, strings.SplitN(files[c.Part], "/", 2)[0])); err != nil {
		t.Fatal(err)
	}
	if c.Profile == "absent" {
		return
	}
	p, has := Profile{t, folder}, profiles[c.Profile]
	at := ReadAt.Add(has.written)
	c.write(p, has.value, at)
	switch c.Damage {
	case "damaged":
		p.Damage(files[c.Part])
	case "cut":
		p.Truncate(files[c.Part])
	case "unread":
		if err := os.Remove(filepath.Join(folder, "Cookies")); err != nil {
			t.Fatal(err)
		}
		p.StrangeCookies()
	}
	p.SetModTime(files[c.Part], at)
}

func (c Copies) write(p Profile, value string, at time.Time) {
	p.T.Helper()
	switch c.Part {
	case state.ComponentCookies:
		jar := []state.Cookie{}
		if value != "" {
			jar = append(jar, cookie(value))
		}
		p.Cookies(at, jar...)
	case state.ComponentLocalStorage:
		areas := []state.Area{{StorageKey: "https://other.example/", Items: []state.Item{{Key: "k", Value: "other"}}}}
		if value != "" {
			areas = append(areas, area(value))
		}
		p.LocalStorage(at, areas...)
	case state.ComponentSessionStorage:
		areas := []state.Area{{StorageKey: "https://other.example/", Items: []state.Item{{Key: "k", Value: "other"}}}}
		if value != "" {
			areas = append(areas, area(value))
		}
		p.SessionStorage(areas...)
	case state.ComponentTabs:
		p.Tabs("https://" + value + ".example/")
	}
	p.SetModTime(files[c.Part], at)
}

func cookie(value string) state.Cookie {
	return state.Cookie{Name: "n", Value: value, Domain: domain, Path: "/"}
}

func area(value string) state.Area {
	return state.Area{StorageKey: origin, Items: []state.Item{{Key: "k", Value: value}}}
}

// Value returns the value of the part in a document; "" if it has none.
func (c Copies) Value(doc state.Document) string {
	switch {
	case c.Part == state.ComponentCookies && len(doc.Cookies) > 0:
		return doc.Cookies[0].Value
	case c.Part == state.ComponentLocalStorage:
		return c.ValueIn(doc.Local)
	case c.Part == state.ComponentSessionStorage && len(doc.Tabs) > 0:
		return c.ValueIn(doc.Tabs[0].Session)
	}
	return ""
}

// ValueIn returns the value in the areas; "" if they have none.
func (c Copies) ValueIn(areas []state.Area) string {
	i := slices.IndexFunc(areas, func(a state.Area) bool { return a.StorageKey == origin })
	if i < 0 || len(areas[i].Items) == 0 {
		return ""
	}
	return areas[i].Items[0].Value
}

// OnDisk returns the value that a profile's folder has now; "" if it has none or cannot
// be read.
func (c Copies) OnDisk(t testing.TB, folder string) string {
	t.Helper()
	switch c.Part {
	case state.ComponentLocalStorage:
		found, err := localstorage.Read(t.Context(), os.DirFS(folder))
		if err != nil {
			t.Fatal(err)
		}
		return c.ValueIn(found.Areas)
	case state.ComponentSessionStorage:
		found, err := sessionstorage.Read(t.Context(), os.DirFS(folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{Read, Disk, Was} {
			if found.Has(area(value)) {
				return value
			}
		}
	}
	return ""
}

// Golden compares a table with a golden file, or writes the file if STASIS_GOLDEN is
// "write".
func Golden(t testing.TB, file string, rows []string) {
	t.Helper()
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	got := strings.Join(rows, "\n") + "\n"
	if os.Getenv("STASIS_GOLDEN") == "write" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", filepath.Base(file), diff)
	}
}

// Outcome returns the value that is taken, with a mark if a doubt or a
// loss is reported.
func Outcome(value string, reported bool) string {
	if value == "" {
		value = "none"
	}
	if reported {
		value += ", told"
	}
	return value
}
