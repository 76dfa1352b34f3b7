package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/state"
)

var readAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// lastly is a reading that took a tenth of a second.
func lastly(doc state.Document) lastReading {
	return lastReading{doc: doc, from: readAt, until: readAt.Add(100 * time.Millisecond)}
}

func doubts(doc state.Document) (of []string) {
	for _, d := range doc.Doubts {
		of = append(of, d.Component+d.Origin)
	}
	return of
}

// The jar of a dead Chrome is taken where it is known to be newer than the last
// reading, else the reading; where nobody knows, that is told.
func TestNewerCookies(t *testing.T) {
	of := func(values ...string) (jar []state.Cookie) {
		for _, v := range values {
			jar = append(jar, state.Cookie{Name: v[:1], Value: v, Domain: "a.example", Path: "/"})
		}
		return jar
	}
	foreign := of("x1")[0]
	soon, later := readAt.Add(time.Second), readAt.Add(time.Hour)
	for name, test := range map[string]struct {
		disk    []state.Cookie
		written time.Time
		newest  time.Time // cookie in the jar
		want    []state.Cookie
		doubted bool
	}{
		"nothing was written since":            {of("a1"), readAt.Add(-time.Hour), time.Time{}, of("a2", "b1"), false},
		"no jar":                               {nil, time.Time{}, time.Time{}, of("a2", "b1"), false},
		"one that cannot be read":              {nil, later, time.Time{}, of("a2", "b1"), true},
		"written much later":                   {of("a1"), later, readAt.Add(-time.Hour), of("a1"), false},
		"a newer cookie proves it":             {of("a3"), soon, soon, of("a3"), false},
		"written just then, and the same":      {of("a2", "b1"), soon, readAt.Add(-time.Hour), of("a2", "b1"), false},
		"written just then, and different":     {of("a2"), soon, readAt.Add(-time.Hour), of("a2", "b1"), true},
		"what it cannot read Chrome drops too": {append(of("a3"), foreign), later, later, of("a3"), false},
	} {
		found := inspect.Profile{Listed: test.disk, CookiesAt: test.newest, Foreign: map[string]string{foreign.Identity(): "sealed"}}
		r := lastly(state.Document{Cookies: of("a2", "b1")})
		got := r.cookies(r.doc, found, test.written)
		if diff := cmp.Diff(test.want, got.Cookies); diff != "" || (len(got.Doubts) > 0) != test.doubted {
			t.Errorf("%s: doubts %q, (-want +got):\n%s", name, doubts(got), diff)
		}
	}
}

// A journal that Chrome had begun when it died is no write of the jar.
func TestJarWritten(t *testing.T) {
	profile := t.TempDir()
	for name, at := range map[string]time.Time{"Cookies": readAt, "Cookies-journal": readAt.Add(time.Hour)} {
		path := filepath.Join(profile, name)
		if err := os.WriteFile(path, []byte{0}, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if got := jarWritten(profile); !got.Equal(readAt) {
		t.Errorf("the jar was written at %s", got)
	}
}

// The shell keeps session cookies in memory only, so its jar is never the newer one for these.
func TestNewerCookiesOfTheShell(t *testing.T) {
	passing, lasting := state.Cookie{Name: "p", Domain: "a.example", Session: true}, state.Cookie{Name: "l", Domain: "a.example"}
	r := lastly(state.Document{Chrome: state.Chrome{Engine: "shell"}, Cookies: []state.Cookie{passing, lasting}})
	later := readAt.Add(time.Hour)
	got := r.cookies(r.doc, inspect.Profile{Listed: []state.Cookie{}, CookiesAt: later}, later)
	if diff := cmp.Diff([]state.Cookie{passing}, got.Cookies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Of localStorage each storage key is decided by itself.
func TestNewerLocal(t *testing.T) {
	const key = "https://a.example/"
	item := func(v string) state.Area {
		return state.Area{StorageKey: key, Items: []state.Item{{Key: "k", Value: v}}}
	}
	disk := func(last localstorage.Commit, areas ...state.Area) localstorage.Contents {
		return localstorage.Contents{Areas: append([]state.Area{}, areas...), Commits: map[string]localstorage.Commit{key: last}}
	}
	early, just, later := readAt.Add(-time.Minute), readAt.Add(50*time.Millisecond), readAt.Add(time.Minute)
	none := localstorage.Contents{Areas: []state.Area{}, Commits: map[string]localstorage.Commit{}}
	for name, test := range map[string]struct {
		disk    localstorage.Contents
		written time.Time
		had     int // items in the files of the reading's snapshot
		laid    bool
		doubted bool
	}{
		"never written":                        {none, early, 0, true, false},
		"written before":                       {disk(localstorage.Commit{At: early}, item("old")), early, 1, true, false},
		"written since":                        {disk(localstorage.Commit{At: later}, item("new")), later, 1, false, false},
		"written meanwhile":                    {disk(localstorage.Commit{At: just}, item("old")), just, 1, true, true},
		"on the disk as it was read":           {disk(localstorage.Commit{At: early}, item("read")), later, 1, false, false},
		"emptied since":                        {disk(localstorage.Commit{Emptied: true}), later, 1, false, false},
		"gone without a trace":                 {none, later, 1, true, true},
		"emptied before, and not written":      {disk(localstorage.Commit{Emptied: true}), early, 0, true, false},
		"emptied, and another written since":   {disk(localstorage.Commit{Emptied: true}), later, 0, true, true},
		"a database that cannot be read":       {localstorage.Contents{}, later, 1, true, true},
		"one that could not be, and was older": {localstorage.Contents{}, early, 1, true, false},
	} {
		r := lastly(state.Document{Local: []state.Area{item("read")}})
		if test.had > 0 {
			r.doc.Inventory = state.Inventory{{Component: state.ComponentLocalStorage, Origin: key, Items: test.had}}
		}
		got := r.local(r.doc, test.disk, test.written)
		if (len(got.Local) > 0) != test.laid || (len(got.Doubts) > 0) != test.doubted {
			t.Errorf("%s: laid %v, doubts %q", name, got.Local, doubts(got))
		}
	}
}

// What of the tabs' sessionStorage cannot be held against the files of its moment
// is as it was read, and that is told; what is on the disk is left to Chrome.
func TestNewerSessionStorage(t *testing.T) {
	area := state.Area{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "v"}}}
	for _, onDisk := range []bool{true, false} {
		for _, written := range []bool{true, false} {
			m := tabMerge{doc: state.Document{Tabs: make([]state.Tab, 1), TabsOnDisk: onDisk}, written: written,
				once: map[string]int{area.StorageKey: 1}, forget: map[string]bool{}, on: sessionstorage.Contents{Damage: "torn"}}
			m.area(0, area)
			if !slices.EqualFunc(m.doc.Tabs[0].Session, []state.Area{area}, func(a, b state.Area) bool { return cmp.Equal(a, b) }) ||
				m.forget[area.StorageKey] != onDisk || (len(m.doc.Doubts) > 0) != written {
				t.Errorf("on disk %t, written %t: %+v, forget %v, doubts %q", onDisk, written, m.doc.Tabs, m.forget, doubts(m.doc))
			}
		}
	}
}

// Session files are newer than a reading where they were written well after it, or
// after it and name what was read.
func TestNewerTabs(t *testing.T) {
	profile := t.TempDir()
	if err := os.MkdirAll(filepath.Join(profile, "Sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(profile, "Sessions", "Session_1"), []byte("\x00https://a.example/\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	known, unknown := state.Tab{URL: "https://a.example/"}, state.Tab{URL: "https://b.example/"}
	for name, test := range map[string]struct {
		after time.Duration
		tabs  []state.Tab
		want  bool
	}{
		"before":                 {-time.Second, []state.Tab{known}, false},
		"during":                 {50 * time.Millisecond, []state.Tab{known}, false},
		"just after, all named":  {time.Second, []state.Tab{known, {URL: "about:blank"}}, true},
		"just after, not all":    {time.Second, []state.Tab{known, unknown}, false},
		"long after, whatever":   {time.Minute, []state.Tab{unknown}, true},
		"just after, none known": {time.Second, nil, true},
	} {
		r := lastly(state.Document{Tabs: test.tabs})
		if got := r.tabsOnDisk(t.Context(), profile, readAt.Add(test.after)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
