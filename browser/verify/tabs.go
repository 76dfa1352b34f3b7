package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// loadDeadline bounds how long a verification waits for pages that have not loaded and have
// not failed. firstPause is the pause before the second reading; later ones double.
const (
	loadDeadline = 10 * time.Second
	firstPause   = 100 * time.Millisecond
)

// read reads the environment. While a restored tab has neither its page nor an error page,
// it waits and reads again, until loadDeadline.
func (e Environment) read(ctx context.Context) (state.Document, error) {
	var waited time.Duration
	for pause := firstPause; ; pause *= 2 {
		now, err := capture.Read(ctx, e.Reader)
		if err != nil {
			return now, err
		}
		e.Pending.Correct(now.Tabs)
		some := slices.ContainsFunc(now.Tabs, loading)
		if !some || waited >= loadDeadline {
			return now, nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			waited += pause
		case <-ctx.Done():
			timer.Stop()
			return now, ctx.Err()
		}
	}
}

// loading reports whether a tab has neither the page of its address nor an error page.
func loading(t state.Tab) bool { return t.Unloaded && !t.ErrorPage && t.URL != "" }

// tabPair is a saved tab with the open one that it has become, which shows the same URL. The
// saved tab's TargetID is that of the open one if that was certain before the comparison,
// else "".
type tabPair struct{ saved, open state.Tab }

// pairTabs finds for each saved tab the open one that it has become. tabOf gives its ID by
// the saved tab's index, or "". Where that is not certain, tabs of a URL are paired so that
// equal ones are together. A saved tab whose open one has gone, or has navigated, has no
// pair.
func pairTabs(saved, open []state.Tab, tabOf func(int) string) []tabPair {
	at := make([]int, len(saved)) // index of the open tab
	taken := make([]bool, len(open))
	take := func(i, j int) {
		if at[i] = j; j >= 0 {
			taken[j] = true
		}
	}
	for i := range saved {
		at[i] = -1
		if id := tabOf(i); id != "" {
			take(i, slices.IndexFunc(open, func(t state.Tab) bool { return t.TargetID == id }))
		}
	}
	for _, fits := range []func(saved, open state.Tab) bool{sameContents, func(saved, open state.Tab) bool { return true }} {
		for i, tab := range saved {
			if at[i] >= 0 || tabOf(i) != "" {
				continue
			}
			for j, other := range open {
				if !taken[j] && other.URL == tab.URL && fits(tab, other) {
					take(i, j)
					break
				}
			}
		}
	}
	var pairs []tabPair
	for i, tab := range saved {
		if j := at[i]; j >= 0 && open[j].URL == tab.URL {
			tab.TargetID = tabOf(i)
			pairs = append(pairs, tabPair{tab, open[j]})
		}
	}
	return pairs
}

// sameContents reports whether an open tab has the saved one's window.name and
// sessionStorage.
func sameContents(saved, open state.Tab) bool {
	return saved.Name == open.Name && !slices.ContainsFunc(saved.Session, func(area state.Area) bool {
		is, _ := areaOf(open, area.StorageKey)
		_, differs := area.Differ(is, state.ComponentSessionStorage, state.BySite)
		return differs
	})
}

func areaOf(tab state.Tab, storageKey string) (state.Area, bool) {
	i := slices.IndexFunc(tab.Session, func(a state.Area) bool { return a.StorageKey == storageKey })
	if i < 0 {
		return state.Area{}, false
	}
	return tab.Session[i], true
}

// sessionDifferences compares the sessionStorage of tabs. had returns the part of an area
// that was there before the page ran.
func sessionDifferences(pairs []tabPair, had func(state.Tab, state.Area) state.Area) []state.Difference {
	var all []state.Difference
	for _, p := range pairs {
		for _, area := range p.saved.Session {
			was := had(p.saved, area)
			is, there := areaOf(p.open, area.StorageKey)
			switch {
			case there:
			case p.open.Unloaded:
				is = was // only the restore can have written to it
			default:
				continue
			}
			all = append(all, area.DifferencesSince(was, is, state.ComponentSessionStorage)...)
		}
	}
	return all
}

// nameDifferences compares window.name of tabs. It leaves out tabs whose page did not answer.
func nameDifferences(pairs []tabPair, missed []state.Missed, by func(state.Tab) string) []state.Difference {
	unread := func(open state.Tab) bool {
		return slices.ContainsFunc(missed, func(m state.Missed) bool {
			return m.Origin == open.URL && (m.Component == state.ComponentWindowName || m.Component == state.ComponentSessionStorage)
		})
	}
	var all []state.Difference
	for _, p := range pairs {
		if p.saved.Name == "" || p.saved.Name == p.open.Name || p.open.Name == "" && unread(p.open) {
			continue
		}
		d := state.Difference{Component: state.ComponentWindowName, By: by(p.saved), Changed: 1, Names: []string{}}
		if p.open.Name == "" {
			d.Changed, d.Missing = 0, 1
		}
		all = append(all, d)
	}
	return all
}

// addUnloaded adds the tabs that show an error page, and did not when they were saved, as
// differences. It also adds warnings of them, and of tabs whose page has not loaded.
func (e Environment) addUnloaded(ctx context.Context, v *state.Verification, pairs []tabPair, first []state.Component) {
	failed := state.Difference{Component: state.ComponentTabs, By: state.ByRestore}
	var texts []string
	for _, p := range pairs {
		address := state.ShortURL(p.saved.URL)
		switch {
		case p.open.ErrorPage && !p.saved.ErrorPage:
			texts = append(texts, e.errorPage(ctx, p.open))
			failed.Changed++
			failed.Names = append(failed.Names, address)
		case loading(p.open):
			v.Warnings = append(v.Warnings, "the tab at "+address+" has not loaded: its site has not answered yet")
		}
	}
	if len(texts) == 0 {
		return
	}
	slices.Sort(failed.Names)
	failed.Names = slices.Compact(failed.Names)
	failed.Names = failed.Names[:min(len(failed.Names), state.MaxNames)]
	v.Differences = append(v.Differences, failed)
	for _, text := range texts {
		v.Warnings = append(v.Warnings, "the tab at "+text+"; its saved state is there when the page loads")
	}
	for _, line := range first {
		if line.Name == state.ComponentTabs && line.Reason.Code == "" {
			line.Reason = report.ErrorPage.With(strings.Join(texts[:min(len(texts), state.MaxNames)], ", "))
			v.Components = append(v.Components, line)
		}
	}
}

// errorPages returns warnings of the open tabs that show an error page, if it is not known
// what they showed when they were saved.
func (e Environment) errorPages(ctx context.Context, open []state.Tab) []string {
	var warnings []string
	for _, tab := range open {
		if tab.ErrorPage {
			warnings = append(warnings, "the tab at "+e.errorPage(ctx, tab))
		}
	}
	return warnings
}

// errorPage describes the error page of an open tab.
func (e Environment) errorPage(ctx context.Context, open state.Tab) string {
	id := target.ID(open.TargetID)
	code := cmp.Or(capture.ErrorCode(ctx, e.Reader, id), e.Pending.ErrorOf(id), "the error is not known")
	return fmt.Sprintf("%s shows an error page (%s)", state.ShortURL(open.URL), code)
}
