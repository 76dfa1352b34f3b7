package session

import (
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/state"
)

// ahead is a reading of a clock that has been set back by an hour since, and half
// an hour went by.
func ahead(doc state.Document) lastReading {
	r := lastly(doc)
	r.now = readAt.Add(-30 * time.Minute)
	return r
}

var beforeNow, afterNow = readAt.Add(-40 * time.Minute), readAt.Add(-20 * time.Minute)

// A jar whose time says nothing is taken with a doubt; one of the old clock is as old
// as it says, and a cookie that is newer than the reading proves it as ever.
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
		r := ahead(state.Document{Cookies: a})
		got := r.cookies(r.doc, inspect.Profile{Listed: test.disk, CookiesAt: test.newest}, test.written)
		if len(got.Cookies) != 1 || got.Cookies[0].Value != test.want || (len(got.Doubts) > 0) != test.doubted {
			t.Errorf("%s: %+v, doubts %q", name, got.Cookies, doubts(got))
		}
	}
}

// So it is with each storage key of localStorage.
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
		laid    bool // as it was read
		doubted bool
	}{
		"may be of either clock":      {disk(localstorage.Commit{At: beforeNow}, item("new")), false, true},
		"emptied":                     {disk(localstorage.Commit{Emptied: true}), false, true},
		"of the old clock, and older": {disk(localstorage.Commit{At: afterNow}, item("old")), true, false},
		"as it was read":              {disk(localstorage.Commit{At: beforeNow}, item("read")), false, false},
		"never written":               {localstorage.Contents{Areas: []state.Area{}, Commits: map[string]localstorage.Commit{}}, true, false},
		"cannot be read":              {localstorage.Contents{}, true, true},
	} {
		r := ahead(state.Document{Local: []state.Area{item("read")}})
		got := r.local(r.doc, test.disk, beforeNow)
		if (len(got.Local) > 0) != test.laid || (len(got.Doubts) > 0) != test.doubted {
			t.Errorf("%s: laid %v, doubts %q", name, got.Local, doubts(got))
		}
	}
}

// A crash after the clock was set back is told as one of which times say nothing, after
// a checkpoint and in a session that was resumed before. The jar here cannot be read,
// which is a doubt only where it may be the newer one; the tabs are as Chrome left them.
func TestCrashAfterTheClockWasSetBack(t *testing.T) {
	for name, resumed := range map[string]bool{"a checkpoint": false, "a resume": true} {
		r := newRig(t, nil)
		id := r.create(alice, onCrash).ID
		r.checkpoint(id, plain)
		if resumed {
			r.end(alice, id, filesystem)
			r.resumed(alice, id)
		}
		r.wrote(r.clock.add(-2*time.Hour), "Cookies", "Sessions/Session_1")
		r.clock.add(time.Minute)
		r.crashes(id)
		doc := r.browsers.last().restored
		if got := doubts(doc); !slices.Contains(got, state.ComponentCookies) || !slices.Contains(got, state.ComponentTabs) || !doc.TabsOnDisk {
			t.Errorf("%s: doubts %q, tabs on disk: %t", name, got, doc.TabsOnDisk)
		}
	}
}

// One that was set back before a session was resumed does not hide what Chrome has
// written in it.
func TestResumedAfterTheClockWasSetBack(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, onCrash).ID
	r.end(alice, id, filesystem)
	r.clock.add(-2 * time.Hour)
	r.resumed(alice, id)
	r.wrote(r.clock.add(time.Minute), "Sessions/Session_1")
	r.clock.add(time.Minute)
	r.crashes(id)
	if doc := r.browsers.last().restored; !doc.TabsOnDisk || len(doc.Doubts) > 0 {
		t.Errorf("tabs on disk: %t, doubts %q", doc.TabsOnDisk, doubts(doc))
	}
}
