package profile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/state"
)

var readAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// crashEvidence returns the evidence of a Chrome that died after a reading of a tenth of
// a second.
func crashEvidence() *Crash { return &Crash{From: readAt, Until: readAt.Add(100 * time.Millisecond)} }

// taken returns the cookies that a verdict takes.
func (v Verdict) taken(doc state.Document) []state.Cookie {
	if v.Cookies == FromProfile {
		return v.Jar
	}
	return doc.Cookies
}

func doubts(v Verdict) (of []string) {
	for _, d := range v.Doubts {
		of = append(of, d.Component+d.Origin)
	}
	return of
}

// After a crash, the profile's jar is taken if it is known to be newer than the last
// reading, otherwise the reading. If that is unknown, there is a doubt.
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
		"nothing was written since":        {of("a1"), readAt.Add(-time.Hour), time.Time{}, of("a2", "b1"), false},
		"no jar":                           {nil, time.Time{}, time.Time{}, of("a2", "b1"), false},
		"one that cannot be read":          {nil, later, time.Time{}, of("a2", "b1"), true},
		"written much later":               {of("a1"), later, readAt.Add(-time.Hour), of("a1"), false},
		"a newer cookie proves it":         {of("a3"), soon, soon, of("a3"), false},
		"written just then, and the same":  {of("a2", "b1"), soon, readAt.Add(-time.Hour), of("a2", "b1"), false},
		"written just then, and different": {of("a2"), soon, readAt.Add(-time.Hour), of("a2", "b1"), true},
		"a cookie that Chrome cannot read": {append(of("a3"), foreign), later, later, of("a3"), false},
	} {
		found := inspect.Profile{AllCookies: test.disk, CookiesAt: test.newest, UnreadableCookies: map[string]string{foreign.Identity(): "sealed"}}
		doc, crash := state.Document{Cookies: of("a2", "b1")}, crashEvidence()
		crash.Written.Cookies = test.written
		got := Reconcile(Copies{doc, found, crash})
		if diff := cmp.Diff(test.want, got.taken(doc)); diff != "" || (len(got.Doubts) > 0) != test.doubted {
			t.Errorf("%s: doubts %q, (-want +got):\n%s", name, doubts(got), diff)
		}
	}
}

// A journal that Chrome had begun when it died does not count as a write of the jar.
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
	if got := lastWritten(profile, jarFiles...); !got.Equal(readAt) {
		t.Errorf("the jar was written at %s", got)
	}
}

// The shell keeps session cookies in memory only, so these are always taken from the
// reading.
func TestNewerCookiesOfTheShell(t *testing.T) {
	passing, lasting := state.Cookie{Name: "p", Domain: "a.example", Session: true}, state.Cookie{Name: "l", Domain: "a.example"}
	doc, crash := state.Document{Chrome: state.Chrome{Engine: "shell"}, Cookies: []state.Cookie{passing, lasting}}, crashEvidence()
	crash.Written.Cookies = readAt.Add(time.Hour)
	got := Reconcile(Copies{doc, inspect.Profile{AllCookies: []state.Cookie{}, CookiesAt: crash.Written.Cookies}, crash})
	if diff := cmp.Diff([]state.Cookie{passing}, got.taken(doc)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// localStorage is decided separately for each storage key.
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
		applied bool
		doubted bool
	}{
		"never written":                        {none, early, 0, true, false},
		"written before":                       {disk(localstorage.Commit{At: early}, item("old")), early, 1, true, false},
		"written since":                        {disk(localstorage.Commit{At: later}, item("new")), later, 1, false, false},
		"written meanwhile":                    {disk(localstorage.Commit{At: just}, item("old")), just, 1, true, true},
		"on the disk as it was read":           {disk(localstorage.Commit{At: early}, item("read")), later, 1, false, false},
		"emptied since":                        {disk(localstorage.Commit{Emptied: true}), later, 1, false, false},
		"missing without a record":             {none, later, 1, true, true},
		"emptied before, and not written":      {disk(localstorage.Commit{Emptied: true}), early, 0, true, false},
		"emptied, and another written since":   {disk(localstorage.Commit{Emptied: true}), later, 0, true, true},
		"a database that cannot be read":       {localstorage.Contents{}, later, 1, true, true},
		"one that could not be, and was older": {localstorage.Contents{}, early, 1, true, false},
	} {
		doc, crash := state.Document{Local: []state.Area{item("read")}}, crashEvidence()
		crash.Written.LocalStorage = test.written
		if test.had > 0 {
			doc.Inventory = state.Inventory{{Component: state.ComponentLocalStorage, Origin: key, Items: test.had}}
		}
		got := Reconcile(Copies{doc, inspect.Profile{LocalStorage: test.disk}, crash})
		if (got.Local[key] == FromDocument) != test.applied || (len(got.Doubts) > 0) != test.doubted {
			t.Errorf("%s: sources %v, doubts %q", name, got.Local, doubts(got))
		}
	}
}

// If the tabs' sessionStorage on disk cannot be compared with that at the reading, the
// reading is taken. There is a doubt if anything was written since.
func TestNewerSessionStorage(t *testing.T) {
	area := state.Area{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "v"}}}
	for _, onDisk := range []bool{true, false} {
		for _, written := range []bool{true, false} {
			doc, crash := state.Document{Tabs: []state.Tab{{Session: []state.Area{area}}}}, crashEvidence()
			if onDisk {
				crash.Written.Tabs = readAt.Add(time.Hour)
			}
			if written {
				crash.Written.SessionStorage = readAt.Add(time.Hour)
			}
			v := Reconcile(Copies{doc, inspect.Profile{SessionStorage: sessionstorage.Contents{Damage: "torn"}}, crash})
			if diff := cmp.Diff([][]state.Area{{area}}, v.Session); diff != "" || v.Forget[area.StorageKey] != onDisk || (len(v.Doubts) > 0) != written {
				t.Errorf("on disk %t, written %t: forget %v, doubts %q (-want +got):\n%s", onDisk, written, v.Forget, doubts(v), diff)
			}
		}
	}
}

// Session files are newer than a reading if they were written well after it, or just
// after it and contain every tab that was read.
func TestNewerTabs(t *testing.T) {
	profile := t.TempDir()
	if err := os.MkdirAll(filepath.Join(profile, "Sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(profile, "Sessions", "Session_1"), []byte("\x00https://a.example/\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := inspect.ReadTabs(t.Context(), profile)
	if err != nil {
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
		crash := crashEvidence()
		crash.Written.Tabs = readAt.Add(test.after)
		crash.Sessions = files
		if got := Reconcile(Copies{Document: state.Document{Tabs: test.tabs}, Crash: crash}).Tabs == FromProfile; got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// setBackEvidence returns the evidence of a reading by a clock that was then set back by
// an hour, half an hour ago.
func setBackEvidence() *Crash {
	c := crashEvidence()
	c.Now = readAt.Add(-30 * time.Minute)
	return c
}

var beforeNow, afterNow = readAt.Add(-40 * time.Minute), readAt.Add(-20 * time.Minute)

// A jar whose time proves nothing is taken with a doubt. One that is older by the old
// clock is older, and a cookie newer than the reading still proves that the jar is newer.
func TestJarAfterTheClockWasSetBack(t *testing.T) {
	a, b := []state.Cookie{{Name: "a", Value: "1", Domain: "a.example"}}, []state.Cookie{{Name: "a", Value: "2", Domain: "a.example"}}
	for name, test := range map[string]struct {
		disk    []state.Cookie
		written time.Time
		newest  time.Time
		want    string
		doubted bool
	}{
		"may be of either clock":               {b, beforeNow, time.Time{}, "2", true},
		"of the old clock, and older":          {b, afterNow, time.Time{}, "1", false},
		"as it was read":                       {a, beforeNow, time.Time{}, "1", false},
		"a newer cookie proves it":             {b, beforeNow, readAt.Add(time.Minute), "2", false},
		"an empty one":                         {[]state.Cookie{}, beforeNow, time.Time{}, "1", true},
		"one that cannot be read":              {nil, beforeNow, time.Time{}, "1", true},
		"none":                                 {nil, time.Time{}, time.Time{}, "1", false},
		"of the old clock, written well after": {b, readAt.Add(time.Minute), time.Time{}, "2", false},
	} {
		doc, crash := state.Document{Cookies: a}, setBackEvidence()
		crash.Written.Cookies = test.written
		got := Reconcile(Copies{doc, inspect.Profile{AllCookies: test.disk, CookiesAt: test.newest}, crash})
		if jar := got.taken(doc); len(jar) != 1 || jar[0].Value != test.want || (len(got.Doubts) > 0) != test.doubted {
			t.Errorf("%s: %+v, doubts %q", name, jar, doubts(got))
		}
	}
}

// The same holds for each storage key of localStorage.
func TestLocalStorageAfterTheClockWasSetBack(t *testing.T) {
	const key = "https://a.example/"
	item := func(v string) state.Area {
		return state.Area{StorageKey: key, Items: []state.Item{{Key: "k", Value: v}}}
	}
	disk := func(last localstorage.Commit, areas ...state.Area) localstorage.Contents {
		return localstorage.Contents{Areas: append([]state.Area{}, areas...), Commits: map[string]localstorage.Commit{key: last}}
	}
	for name, test := range map[string]struct {
		disk    localstorage.Contents
		applied bool // applied as it was read
		doubted bool
	}{
		"may be of either clock":      {disk(localstorage.Commit{At: beforeNow}, item("new")), false, true},
		"emptied":                     {disk(localstorage.Commit{Emptied: true}), false, true},
		"of the old clock, and older": {disk(localstorage.Commit{At: afterNow}, item("old")), true, false},
		"as it was read":              {disk(localstorage.Commit{At: beforeNow}, item("read")), false, false},
		"never written":               {localstorage.Contents{Areas: []state.Area{}, Commits: map[string]localstorage.Commit{}}, true, false},
		"cannot be read":              {localstorage.Contents{}, true, true},
	} {
		doc, crash := state.Document{Local: []state.Area{item("read")}}, setBackEvidence()
		crash.Written.LocalStorage = beforeNow
		got := Reconcile(Copies{doc, inspect.Profile{LocalStorage: test.disk}, crash})
		if (got.Local[key] == FromDocument) != test.applied || (len(got.Doubts) > 0) != test.doubted {
			t.Errorf("%s: sources %v, doubts %q", name, got.Local, doubts(got))
		}
	}
}

// surveyed returns a document as a save records it.
func surveyed(doc state.Document, found inspect.Profile) state.Document {
	v := Reconcile(Copies{Document: doc, Found: found})
	return v.withDisk(v.withLosses(doc), found)
}

// Each origin has one area in the result, from the disk or from the reading. A cut-off
// write of an unknown origin is reported.
func TestUnwritten(t *testing.T) {
	area := func(key, value string) state.Area {
		return state.Area{StorageKey: key, Items: []state.Item{{Key: "k", Value: value}}}
	}
	found := inspect.Profile{LocalStorage: localstorage.Contents{Truncated: true, Commits: map[string]localstorage.Commit{},
		Areas: []state.Area{area("https://a.example/", "on disk"), area("https://b.example/", "old"), area("https://c.example/", "on disk")}}}
	doc := state.Document{Datadir: state.DatadirClean, Local: []state.Area{area("https://b.example/", "new")}}
	got := surveyed(doc, found)
	want := []state.Area{area("https://a.example/", "on disk"), area("https://b.example/", "new"), area("https://c.example/", "on disk")}
	if diff := cmp.Diff(want, got.Local); diff != "" || len(got.Missed) != 0 || !got.IsFromDisk(state.ComponentLocalStorage) {
		t.Errorf("missed %v (-want +got):\n%s", got.Missed, diff)
	}
	doc.Local = nil
	if got := surveyed(doc, found); len(got.Missed) != 1 || got.Missed[0].Component != state.ComponentLocalStorage || got.Missed[0].Origin != "" {
		t.Errorf("cut-off write of an unknown origin: %+v", got.Missed)
	}
}

// A page's URL counts for its whole origin, including frames in other sites; a storage
// key only for itself.
func TestItemsOf(t *testing.T) {
	items := map[string]int{"https://a.example/": 2, "https://a.example/^0https://b.example": 1, "https://a.example.org/": 4}
	for of, want := range map[string]int{"https://a.example/": 2, "https://a.example/x?y": 3, "https://b.example/": 0,
		"https://a.example/^0https://c.example": 0} {
		if got := itemsOf(items, of); got != want {
			t.Errorf("%s: %d items, want %d", of, got, want)
		}
	}
}
