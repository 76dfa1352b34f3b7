package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// backDeadline is how long Chrome may take, after a load, to restore the scroll position
// and form data of a page.
const backDeadline = 2 * time.Second

// Parts of the addresses of the tabs that stay open.
const (
	historyTab = "tab=history"
	formTab    = "tab=form"
	frontTab   = "tab=front"
	plainTab   = "tab=plain"
)

// tabs returns the kinds that live in open tabs. The first one opens all the tabs, the
// others are made in them.
func tabs() []kind {
	return []kind{
		{"open tabs: addresses", inTabs, seedTabs, readTabs},
		{"… their back/forward lists", inTabs, nil, readHistory},
		{"… titles of the pages in them", inTabs, nil, readTitles},
		{"… which one is in front", inTabs, nil, inTab(frontTab, `return document.visibilityState === "visible" ? "it is" : ""`)},
		{"… scroll position", inTabs,
			inFront(formTab, "", `scrollTo(0, 1234)`),
			inFront(formTab, `scrollY > 0`, `return scrollY ? String(scrollY) : ""`)},
		{"… form data", inTabs,
			inFront(formTab, "", `
				text.value = mark; box.checked = true; choice.value = "two"; area.value = "two\nlines"`),
			inFront(formTab, `text.value !== ""`, `
				return text.value && JSON.stringify([text.value, box.checked, choice.value, area.value])`)},
		{"window.name", inTabs,
			inTab(frontTab, `window.name = mark`),
			inTab(frontTab, `return window.name`)},
		{"sessionStorage", inTabs,
			inTab(frontTab, `sessionStorage.setItem("kind", mark)`),
			inTab(frontTab, `return sessionStorage.getItem("kind")`)},
		{"sessionStorage: a lone surrogate in a value", inTabs,
			inTab(frontTab, `sessionStorage.setItem("lone", "\udfff" + mark)`),
			inTab(frontTab, `
				const value = sessionStorage.getItem("lone");
				return value && JSON.stringify(value)`)}, // JSON escapes the surrogate
		{"sessionStorage: a lone surrogate in a key", inTabs,
			inTab(frontTab, `sessionStorage.setItem("\ud800", mark)`),
			inTab(frontTab, `return sessionStorage.getItem("\ud800")`)},
		{"sessionStorage of a third-party frame", inTabs,
			inTab(frontTab, `await frame('sessionStorage.setItem("kind", "framed")')`),
			inTab(frontTab, `return frame('return sessionStorage.getItem("kind")')`)},
	}
}

// seedTabs opens the tabs. The first has a page to go back to and one to go forward to.
// Then come one with a form, those without scripts and, in front, one with a frame.
func seedTabs(ctx context.Context, at *visit) (string, error) {
	pages, err := at.pages(ctx)
	if err != nil {
		return "", err
	}
	first, err := at.attach(ctx, pages[0].ID)
	if err != nil {
		return "", err
	}
	for _, page := range []string{"/?first", "/?" + historyTab, "/?last"} {
		if err := first.visit(ctx, at.site.Origin("a")+page); err != nil {
			return "", err
		}
	}
	if _, err := first.run(ctx, `setTimeout(() => history.back())`); err != nil {
		return "", err
	}
	if err := first.await(ctx, `location.search === "?`+historyTab+`" && `+loaded); err != nil {
		return "", err
	}
	if _, err := at.open(ctx, at.site.Origin("a")+"/form?"+formTab); err != nil {
		return "", err
	}
	for _, path := range plainTabs {
		if _, err := at.open(ctx, at.site.Origin("a")+path); err != nil {
			return "", err
		}
	}
	front, err := at.open(ctx, at.site.Origin("a")+"/?frame=b&"+frontTab)
	if err != nil {
		return "", err
	}
	return "", at.activate(ctx, front)
}

// readTabs lists the addresses of the site's tabs.
func readTabs(ctx context.Context, at *visit) (string, error) {
	pages, err := at.pages(ctx)
	var found []string
	for _, p := range pages {
		if strings.HasPrefix(p.URL, at.site.Origin("a")) {
			found = append(found, p.URL)
		}
	}
	slices.Sort(found) // targets are not in the order of tabs
	return strings.Join(found, " "), err
}

func readHistory(ctx context.Context, at *visit) (string, error) {
	t, err := at.find(ctx, historyTab)
	if t == nil || err != nil {
		return "", err
	}
	history, err := t.history(ctx)
	if len(history.Entries) < 2 || err != nil {
		return "", err
	}
	found := []string{strconv.Itoa(history.CurrentIndex)}
	for _, e := range history.Entries {
		found = append(found, e.URL)
	}
	return strings.Join(found, " "), nil
}

// readTitles returns the titles in the back/forward list, except the open page's, which
// is loaded again.
func readTitles(ctx context.Context, at *visit) (string, error) {
	t, err := at.find(ctx, historyTab)
	if t == nil || err != nil {
		return "", err
	}
	history, err := t.history(ctx)
	var found []string
	for i, e := range history.Entries {
		if i != history.CurrentIndex && e.Title != "" {
			found = append(found, e.Title)
		}
	}
	return strings.Join(found, " "), err
}

// history is a tab's back/forward list.
type history struct {
	CurrentIndex int
	Entries      []struct{ URL, Title string }
}

func (t *tab) history(ctx context.Context) (h history, err error) {
	return h, t.do(ctx, "Page.getNavigationHistory", nil, &h)
}

// find attaches to the tab whose address contains a text. It returns nil if there is
// none.
func (b *browser) find(ctx context.Context, text string) (*tab, error) {
	pages, err := b.pages(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		if strings.Contains(p.URL, text) {
			return b.attach(ctx, p.ID)
		}
	}
	return nil, nil
}

// inTab runs a script in one of the open tabs, if the tab is there.
func inTab(name, body string) step {
	return func(ctx context.Context, at *visit) (string, error) {
		t, err := at.find(ctx, name)
		if t == nil || err != nil {
			return "", err
		}
		if err := t.await(ctx, arrived); err != nil {
			return "", err
		}
		return t.run(ctx, body)
	}
}

// inFront is inTab with the tab in front. Afterwards it activates the tab that was in
// front. back is an expression that is true once Chrome has restored what it restores
// only after the load; "" for no wait.
func inFront(name, back, body string) step {
	return func(ctx context.Context, at *visit) (string, error) {
		t, err := at.find(ctx, name)
		if t == nil || err != nil {
			return "", err
		}
		if err := at.activate(ctx, t); err != nil {
			return "", err
		}
		if back != "" {
			soon, cancel := context.WithTimeout(ctx, backDeadline)
			_ = t.await(soon, back) // if it stays false, the reading shows that
			cancel()
		}
		value, err := inTab(name, body)(ctx, at)
		front, failed := at.find(ctx, frontTab)
		if front != nil {
			failed = at.activate(ctx, front)
		}
		return value, errors.Join(err, failed)
	}
}

// activate brings a tab to the front.
func (b *browser) activate(ctx context.Context, t *tab) error {
	return b.Call(ctx, "", "Target.activateTarget", obj{"targetId": t.target}, nil)
}
