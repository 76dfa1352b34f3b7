package main

import (
	"context"
	"slices"
	"strings"
)

// Parts of the addresses of plain tabs in environments that have no other page.
const (
	soleTab   = "tab=single"
	besideTab = "tab=beside"
)

// singleTab returns the kinds of an environment with one tab, whose page has no scripts.
func singleTab() []kind {
	return onlyPage("a single tab without scripts", soleTab, nil)
}

// besideBlankTab returns the kinds of the same environment with a blank tab added.
func besideBlankTab() []kind {
	return onlyPage("a tab without scripts beside a blank one", besideTab, func(ctx context.Context, at *visit) error {
		_, err := at.open(ctx, blankPage)
		return err
	})
}

// onlyPage returns the kinds of a plain page in the first tab. more opens the other
// tabs; nil for none.
func onlyPage(name, tab string, more func(context.Context, *visit) error) []kind {
	open := func(ctx context.Context, at *visit) (string, error) {
		pages, err := at.pages(ctx)
		if err != nil {
			return "", err
		}
		first, err := at.attach(ctx, pages[0].ID)
		if err != nil {
			return "", err
		}
		if err := first.visit(ctx, at.site.Origin("a")+"/plain?"+tab); err != nil {
			return "", err
		}
		if more == nil {
			return "", nil
		}
		return "", more(ctx, at)
	}
	return []kind{
		{name: name + ": addresses", where: inTabs, seed: open, read: func(ctx context.Context, at *visit) (string, error) { return addresses(ctx, at, tab) }},
		{name: name + ": window.name", where: inTabs, seed: inTab(tab, `window.name = mark`), read: inTab(tab, `return window.name`)},
		{name: name + ": sessionStorage", where: inTabs, seed: keepIn(tab), read: readIn(tab)},
	}
}

// addresses lists the addresses of all tabs. It returns "" if none contains the text.
func addresses(ctx context.Context, at *visit, tab string) (string, error) {
	pages, err := at.pages(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, p := range pages {
		found = append(found, p.URL)
	}
	slices.Sort(found) // targets are not in the order of tabs
	if all := strings.Join(found, " "); strings.Contains(all, tab) {
		return all, nil
	}
	return "", nil
}
