// Package verify reads a restored environment back and compares it with what was saved.
// It reports differences by name, never by value, and who caused them.
package verify

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

const (
	// maxHiddenOrigins bounds the number of origins without a tab that are read through a
	// hidden tab. For the others, the reading on disk counts.
	maxHiddenOrigins = 20
	// originDeadline bounds the reading of one such origin.
	originDeadline = 5 * time.Second
)

// countable lists the kinds of state that Chrome repairs or empties when it first opens
// them, and that a page of the origin can count.
var countable = []string{state.ComponentIndexedDB, state.ComponentIndexedDBRecords, state.ComponentCacheStorage,
	state.ComponentServiceWorkers, state.ComponentFileSystem}

// Conn is the daemon's CDP connection to the Chrome that is verified.
type Conn = capture.Conn

// Environment is a restored environment.
type Environment struct {
	// Reader is the connection that reads pages. Driver is the one that reads storage
	// through a hidden tab.
	Reader, Driver Conn
	UserDataDir    string
	Baseline       *baseline.Baseline
	// Pending has the restored tabs whose page has not loaded.
	Pending   Pending
	Overrides state.Overrides // the overrides with which the browser was started
	Now       func() time.Time
}

// Pending has the restored tabs whose page has not loaded; see [restore.PendingTabs].
type Pending interface {
	// Correct corrects these tabs in a reading.
	Correct(tabs []state.Tab) (saved map[int]state.Tab, unwritten bool)
	// ErrorOf returns why the navigation of a tab failed; "" if that is not known.
	ErrorOf(id target.ID) string
}

// Verify reads the environment back once the restored tabs have their documents, and
// compares it with what was saved. report has the restore's report lines. A difference is
// caused by the restore or by a site:
//
//   - Cookies were read before any page ran. The restore caused the differences of that
//     time; the sites caused the later ones.
//   - localStorage and sessionStorage: they were there before a page ran if Chrome still
//     uses the database that held them. The same holds if Chrome reported that it stored
//     what was applied (see package baseline). Then the page, from its first script on,
//     caused the difference; otherwise the restore did. An origin without a page is
//     compared exactly, unless a tab has shown its site since: that page may have gone
//     elsewhere, or had a frame of the origin.
//   - window.name: the site caused a difference if the first look found the name, or if a
//     script of the page may have run before. Otherwise the restore did.
//   - Tabs: one that shows an error page, and did not when it was saved, is a difference
//     caused by the restore. Verify waits a while for pages that have not loaded.
//   - Of the overrides, Verify reads back those that Chrome reports to pages.
//   - Of stores that were damaged or incomplete, Verify reads what Chrome has made of
//     them.
func (e Environment) Verify(ctx context.Context, doc state.Document, report []state.Component) (state.Verification, error) {
	var v state.Verification
	now, err := e.read(ctx)
	if err != nil {
		return v, err
	}
	base := e.Baseline
	if doc.Complete {
		v.Differences = append(v.Differences, state.DifferingCookies(namedCookies(doc.Cookies), base.Jar, e.Now(),
			base.DifferenceCause(doc, state.ComponentCookies, base.Broken.Cookies))...)
	}
	v.Differences = append(v.Differences, state.DifferingCookies(base.Jar, now.Cookies, e.Now(), state.BySite)...)
	hidden, err := capture.OpenHiddenReader(ctx, e.Driver)
	if err != nil {
		return v, err
	}
	defer hidden.Close(ctx)
	lines, differ, err := e.overrides(ctx, hidden, doc, report)
	if err != nil {
		return v, err
	}
	v.Components, v.Differences = lines, append(v.Differences, differ...)
	if doc.Complete {
		open, shown := base.LocalCause(e.UserDataDir), sitesShown(doc.Tabs, now.Tabs)
		v.Differences = append(v.Differences, localDifferences(ctx, hidden, doc.Local, now.Local, open, func(a state.Area) string {
			switch {
			case open(a) == state.ByRestore:
				return state.ByRestore
			case shown.mayChange(a):
				return state.BySite
			default:
				return base.DifferenceCause(doc, state.ComponentLocalStorage, base.Broken.LocalStorage)
			}
		})...)
		pairs := pairTabs(doc.Tabs, now.Tabs, base.TabOf)
		lost := sessionDifferences(pairs, base.SessionBefore(e.UserDataDir))
		v.Components = append(v.Components, correctSession(report, lost)...)
		v.Differences = append(append(v.Differences, lost...), nameDifferences(pairs, now.Missed, base.NameCause)...)
		e.addUnloaded(ctx, &v, pairs, report)
	} else {
		v.Warnings = append(v.Warnings, e.errorPages(ctx, now.Tabs)...)
	}
	if doc.Datadir != state.DatadirNone {
		v.Components = append(v.Components, recount(ctx, hidden, report)...)
		v.Differences = append(v.Differences, notRestored(report, v.Components, !doc.Complete)...)
	}
	return v, ctx.Err()
}

// sites are the sites that tabs have shown since the restore (see [state.Site]).
type sites map[string]bool

// sitesShown returns the sites of the saved tabs, of the open ones, and of the entries that
// their back/forward lists have got since.
func sitesShown(saved, open []state.Tab) sites {
	s, earlier := sites{}, map[string]bool{}
	for _, tab := range saved {
		s[state.Site(tab.URL)] = true
		for _, e := range tab.History {
			earlier[e.URL] = true
		}
	}
	for _, tab := range open {
		s[state.Site(tab.URL)] = true
		for _, e := range tab.History {
			s[state.Site(e.URL)] = s[state.Site(e.URL)] || !earlier[e.URL]
		}
	}
	s[""] = false
	return s
}

// mayChange reports whether a page of these sites can have changed an area of localStorage:
// one of its own site, or one that embeds a frame of it.
func (s sites) mayChange(a state.Area) bool {
	key, named := state.ParseStorageKey(a.StorageKey)
	return named && (s[state.Site(key.Origin)] || s[key.TopLevelSite])
}

// namedCookies returns the cookies that can be restored. Those of partitions without a
// name cannot; their report lines say so.
func namedCookies(cookies []state.Cookie) []state.Cookie {
	return slices.DeleteFunc(slices.Clone(cookies), func(c state.Cookie) bool { return c.Opaque })
}

// localDifferences compares localStorage: of origins with an open page as the page has
// it, of others as a hidden tab reads it. open and closed say who caused a difference in
// either case.
func localDifferences(ctx context.Context, hidden *capture.HiddenReader, saved, now []state.Area, open, closed func(state.Area) string) []state.Difference {
	var all []state.Difference
	reads := 0
	for _, area := range saved {
		i := slices.IndexFunc(now, func(a state.Area) bool { return a.StorageKey == area.StorageKey })
		var is state.Area
		by := closed
		switch {
		case i >= 0:
			is, by = now[i], open
		case reads < maxHiddenOrigins:
			reads++
			var err error
			ctx, cancel := context.WithTimeout(ctx, originDeadline)
			is, err = hidden.Local(ctx, area.StorageKey)
			if cancel(); err != nil {
				continue
			}
		default:
			continue
		}
		if d, some := area.Differ(is, state.ComponentLocalStorage, by(area)); some {
			all = append(all, d)
		}
	}
	return all
}

// correctSession corrects the report's lines of sessionStorage by what the restore did not
// restore.
func correctSession(first []state.Component, differences []state.Difference) []state.Component {
	lost := map[string]int{}
	for _, d := range differences {
		if d.By == state.ByRestore {
			lost[d.Origin] += d.Missing
		}
	}
	var lines []state.Component
	for _, line := range first {
		n := min(lost[line.Origin]-line.Dropped, line.Restored)
		if line.Name != state.ComponentSessionStorage || n <= 0 {
			continue
		}
		delete(lost, line.Origin) // only one line of each origin is corrected
		line.Restored, line.Dropped, line.Reason = line.Restored-n, line.Dropped+n, report.NotThere.With("not there when the page was first read")
		lines = append(lines, line)
	}
	return lines
}

// recount asks Chrome for the current contents of the stores that the report calls
// damaged or incomplete.
func recount(ctx context.Context, hidden *capture.HiddenReader, report []state.Component) []state.Component {
	counts := map[string]map[string]int{}
	var lines []state.Component
	for _, line := range report {
		if !slices.Contains(countable, line.Name) || line.Reason.Code == "" || line.OnPurpose() {
			continue
		}
		n, known := counts[line.Origin]
		if !known && len(counts) < maxHiddenOrigins {
			ctx, cancel := context.WithTimeout(ctx, originDeadline)
			var err error
			if n, err = hidden.Count(ctx, line.Origin); err != nil {
				n = nil
			}
			cancel()
			counts[line.Origin] = n
		}
		if is, counted := n[line.Name]; counted {
			line.Restored = min(line.Saved, is)
			line.Dropped = line.Saved - line.Restored
			lines = append(lines, line)
		}
	}
	return lines
}

// notRestored returns a difference for each component of the corrected report that was
// dropped because of damage. Components that CDP reads were already compared item by
// item, except the cookies of a profile that was not read when it was saved.
func notRestored(report, recounted []state.Component, unread bool) []state.Difference {
	var all []state.Difference
	for _, line := range report {
		for _, better := range recounted {
			if better.Name == line.Name && better.Origin == line.Origin {
				line = better
			}
		}
		if line.Dropped > 0 && !line.OnPurpose() && (state.CountedOnDisk(line.Name) || unread && line.Name == state.ComponentCookies) {
			all = append(all, state.Difference{Component: line.Name, Origin: line.Origin, By: state.ByRestore, Missing: line.Dropped, Names: []string{}})
		}
	}
	return all
}
