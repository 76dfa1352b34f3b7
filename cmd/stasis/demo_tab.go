//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
)

// tabPollInterval is how often a page is checked while the demo waits for it; tabDeadline is how
// long it waits.
const (
	tabPollInterval = 10 * time.Millisecond
	tabDeadline     = 30 * time.Second
)

// openTab connects chromedp to a session, as any client would, and attaches to the first
// tab whose URL begins with prefix. The function that it returns detaches; the tab stays
// open.
func openTab(ctx context.Context, cdpURL, prefix string) (context.Context, func(), error) {
	quiet := chromedp.WithErrorf(func(string, ...any) {})
	allocator, disconnect := remote.NewAllocator(ctx, cdpURL, remote.NoModifyURL)
	browser, leaveBrowser := chromedp.NewContext(allocator, quiet)
	leave := func() { leaveBrowser(); disconnect() }
	targets, err := chromedp.Targets(browser)
	if err != nil {
		leave()
		return nil, nil, err
	}
	for _, t := range targets {
		if t.Type != "page" || !strings.HasPrefix(t.URL, prefix) {
			continue
		}
		tab, leaveTab := chromedp.NewContext(browser, chromedp.WithTargetID(t.TargetID), chromedp.WithDetachOnCancel())
		if err := chromedp.Do(tab); err != nil { // attaches to the tab
			leaveTab()
			leave()
			return nil, nil, err
		}
		return tab, func() { leaveTab(); leave() }, nil
	}
	leave()
	return nil, nil, fmt.Errorf("the session has no tab of %s", prefix)
}

// logIn fills in the site's form and submits it, as a person would.
func logIn(tab context.Context, site string) error {
	if err := chromedp.Do(tab,
		chromedp.Navigate(site+"/login"),
		chromedp.SendKeys(chromedp.CSS("#user"), demosite.User),
		chromedp.SendKeys(chromedp.CSS("#password"), demosite.Password),
		chromedp.Click(chromedp.CSS("#submit")),
	); err != nil {
		return err
	}
	_, err := awaitTitle(tab, "be known as "+demosite.User, func(title string) bool { return title == "me: "+demosite.User })
	return err
}

// readBack returns the account that the site recognises, "" for none, and the value that it
// finds in each place.
func readBack(tab context.Context, site string) (user string, found map[string]string, err error) {
	if err := chromedp.Do(tab, chromedp.Navigate(site+"/me")); err != nil {
		return "", nil, err
	}
	who, err := awaitTitle(tab, "name the account", func(title string) bool { return title == "nobody" || strings.HasPrefix(title, "me: ") })
	if err != nil {
		return "", nil, err
	}
	if name, known := strings.CutPrefix(who, "me: "); known {
		user = name
	}
	if err := show(tab, site+"/check", "checked"); err != nil {
		return user, nil, err
	}
	// A place without a value is null there, and "" here.
	found, err = chromedp.Run(tab, chromedp.Evaluate[map[string]string]("window.__state"))
	return user, found, err
}

// show opens a page and waits until its title says that it has finished.
func show(tab context.Context, url, done string) error {
	if err := chromedp.Do(tab, chromedp.Navigate(url)); err != nil {
		return err
	}
	title, err := awaitTitle(tab, "be titled "+done, func(title string) bool { return title == done || strings.HasPrefix(title, "failed") })
	if err == nil && title != done {
		err = fmt.Errorf("the page says: %s", title)
	}
	return err
}

// awaitTitle waits until wanted accepts the title of the tab, and returns it. what
// describes the awaited action in an error.
func awaitTitle(tab context.Context, what string, wanted func(string) bool) (title string, err error) {
	ctx, cancel := context.WithTimeout(tab, tabDeadline)
	defer cancel()
	tick := time.NewTicker(tabPollInterval)
	defer tick.Stop()
	for {
		// Between two documents there is no title to read, so errors are ignored.
		if title, err = chromedp.Run(ctx, chromedp.Title()); err == nil && wanted(title) {
			return title, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("the page did not %s; its title is %q: %w", what, title, ctx.Err())
		}
	}
}
