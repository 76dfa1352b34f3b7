package main

import (
	"context"
	"slices"
	"strings"
)

// The plain tabs of environments that have no other page, by what stands in their address.
const (
	soleTab   = "tab=single"
	besideTab = "tab=beside"
)

// singleTab are the kinds of an environment that has one tab, whose page has no
// scripts.
func singleTab() []kind {
	return alonePage("a single tab without scripts", soleTab, nil)
}

// besideBlankTab are those of an environment that has a blank tab besides.
func besideBlankTab() []kind {
	return alonePage("a tab without scripts beside a blank one", besideTab, func(ctx context.Context, at *visit) error {
		_, err := at.open(ctx, blankPage)
		return err
	})
}

// alonePage are the kinds of a plain page in the first tab; more opens the other tabs, nil for none.
func alonePage(name, tab string, more func(context.Context, *visit) error) []kind {
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

// addresses lists all tabs, "" where none has a text in its address.
func addresses(ctx context.Context, at *visit, tab string) (string, error) {
	pages, err := at.pages(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, p := range pages {
		found = append(found, p.URL)
	}
	slices.Sort(found) // the order of targets is not that of tabs
	if all := strings.Join(found, " "); strings.Contains(all, tab) {
		return all, nil
	}
	return "", nil
}
