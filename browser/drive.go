package browser

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
)

// screenshotQuality is the JPEG quality of a screenshot, in percent.
const screenshotQuality = 80

// screenshotPause is the time between two attempts at a screenshot.
const screenshotPause = 50 * time.Millisecond

// screenshotAttempt bounds the first attempt; each later one may take twice as long. Chrome
// never answers Page.captureScreenshot if the tab commits a navigation meanwhile (measured
// in the shell, Chromium 156).
const screenshotAttempt = time.Second

// downloadsDeadline bounds the commands that renew the session's settings after a client
// has disconnected, such as the download folder.
const downloadsDeadline = 10 * time.Second

// Page is one open tab.
type Page struct {
	ID    string
	Title string
	URL   string
}

// Admission returns the current admission period. The caller reads it when it accepts a
// client and passes it to Serve, which rejects the client if CloseClients was called in
// between.
func (b *Browser) Admission() mux.Admission { return b.mux.Clients.Admission() }

// Serve connects a CDP client to the whole browser, or to one page. It blocks until the client
// disconnects or ctx ends. If CloseClients was called after the admission was read, the client
// is closed like the others. Serve sets options.Leaving itself.
func (b *Browser) Serve(ctx context.Context, conn mux.Conn, options mux.ServeOptions) error {
	parted := func() {}
	if pages := b.passkeys.authenticators; pages != nil {
		pages.ClientJoining(ctx)
		options.Leaving = func() { parted = pages.ClientLeaving(context.WithoutCancel(ctx)) }
	}
	if !b.shell() { // all tabs of the shell are in front
		b.foreground.enter()
		leave, before := sync.OnceFunc(b.foreground.leave), options.Leaving
		defer leave() // if the client was not admitted
		options.Leaving = func() {
			leave()
			if before != nil {
				before()
			}
		}
	}
	err := b.mux.Serve(ctx, conn, options)
	parted()
	// When a client disconnects, Chrome drops what it set for downloads, permissions and
	// pages, and the session's own settings with it. The deadline keeps a Chrome that has
	// ended or is frozen from blocking.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downloadsDeadline)
	defer cancel()
	_ = keepDownloads(ctx, b.driver, b.dir)
	b.setPermissions(ctx)
	if b.targets != nil && b.mux.Clients.Count() == 0 {
		b.targets.Renew(ctx)
	}
	return err
}

// keepDownloads makes Chrome save downloads in the session's own folder, by their GUIDs.
// The mux gives finished ones their names. Otherwise Chrome drops every download unless a
// client has allowed it. The events come on the browser's session, so pages cannot notice.
func keepDownloads(ctx context.Context, driver *mux.Driver, dir *Dir) error {
	events := true
	_, err := cdp.Call(ctx, driver, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: dir.Incoming(), EventsEnabled: &events})
	return fault.Wrap(err, fault.BrowserFailed, "browser.downloads", "Chrome did not accept the download folder")
}

// CloseClients closes every client's connection with a WebSocket close code. It waits
// until they have disconnected or ctx has ended. New clients are closed until Thaw.
func (b *Browser) CloseClients(ctx context.Context, code int, reason string) error {
	return b.mux.Clients.Close(ctx, code, reason)
}

// Pages lists the open tabs, except those at addresses that a session may not show. The
// one in front comes first, then the one that was there before, as in Chrome's own list.
func (b *Browser) Pages(ctx context.Context) ([]Page, error) {
	if err := b.tabs.closeLeftover(ctx); err != nil {
		return nil, err
	}
	infos, err := capture.Pages(ctx, b.driver)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, "browser.pages", "the tabs could not be listed")
	}
	slices.SortStableFunc(infos, func(x, y *target.Info) int { return b.driver.LastShown(y.TargetID) - b.driver.LastShown(x.TargetID) })
	pages := make([]Page, 0, len(infos))
	for _, t := range infos {
		if !b.mux.Allowed(t.TargetID) {
			continue // is being navigated to about:blank
		}
		pages = append(pages, Page{ID: string(t.TargetID), Title: t.Title, URL: t.URL})
	}
	return pages, nil
}

// Navigate sends the tab in front to a URL. It returns the tab's URL once the navigation
// has committed. An address that a session may not show is unsupported.
func (b *Browser) Navigate(ctx context.Context, url string) (string, error) {
	const op = "browser.navigate"
	if !b.mux.Addresses.Allowed(url) {
		return "", notAllowed(op)
	}
	var at string
	err := b.front(ctx, func(s cdp.Session, _ *target.Info) (err error) {
		at, err = navigate(ctx, s, url)
		return err
	})
	return at, asBrowserFault(ctx, err, op, "the page could not be opened")
}

func notAllowed(op string) error {
	return fault.New(fault.Unsupported, op, "url: sessions may not open this address; use http or https")
}

// navigate waits for the commit event. Chrome answers Page.navigate shortly before the
// commit, while the tab still shows the old page or none.
func navigate(ctx context.Context, s cdp.Session, url string) (string, error) {
	const op = "browser.navigate"
	commits, stop := s.Subscribe(page.FrameNavigated.Method)
	defer stop()
	moves, stopMoves := s.Subscribe(page.NavigatedWithinDocument.Method)
	defer stopMoves()
	if _, err := cdp.Call(ctx, s, page.Enable, page.EnableParams{}); err != nil {
		return "", err
	}
	nav, err := cdp.Call(ctx, s, page.Navigate, page.NavigateParams{URL: url})
	if err != nil {
		return "", err
	}
	if nav.ErrorText != "" {
		return "", fault.New(fault.BrowserFailed, op, "the page could not be opened: %s", nav.ErrorText)
	}
	for {
		select {
		case raw, ok := <-commits:
			var commit page.EventFrameNavigated
			switch {
			case !ok:
				return "", fault.New(fault.BrowserFailed, op, "the tab was closed")
			case json.Unmarshal(raw, &commit) == nil && commit.Frame != nil && commit.Frame.LoaderID == nav.LoaderID:
				return commit.Frame.URL + commit.Frame.URLFragment, nil
			}
		case raw := <-moves:
			var move page.EventNavigatedWithinDocument
			if nav.LoaderID == "" && json.Unmarshal(raw, &move) == nil && move.FrameID == nav.FrameID {
				return move.URL, nil
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// Open starts to load a URL without waiting for the site. It uses the tab in front if
// that is the only one and blank, else a new tab.
func (b *Browser) Open(ctx context.Context, url string) error {
	const op = "browser.open"
	if !b.mux.Addresses.Allowed(url) {
		return notAllowed(op)
	}
	if err := b.tabs.closeLeftover(ctx); err != nil {
		return err
	}
	pages, err := capture.Pages(ctx, b.driver)
	if err != nil {
		return asBrowserFault(ctx, err, op, "the tabs could not be listed")
	}
	at := url
	if b.targets != nil {
		at = "about:blank" // Chrome does not pause a page that is created with an address
	}
	created, err := cdp.Call(ctx, b.driver, target.CreateTarget, target.CreateTargetParams{URL: at})
	if err != nil || created.TargetID == "" {
		return asBrowserFault(ctx, err, op, "the tab could not be opened")
	}
	if b.targets != nil {
		if err := b.openReady(ctx, created.TargetID, url); err != nil {
			return asBrowserFault(ctx, err, op, "the tab could not be opened")
		}
	}
	if len(pages) == 1 && pages[0].URL == "about:blank" {
		err = b.tabs.close(ctx, pages[0].TargetID)
	}
	return asBrowserFault(ctx, err, op, "the blank tab could not be closed")
}

// openReady navigates a new blank tab once it has its setups. It returns when Chrome has
// the command: a client's navigation that follows must come after it, or this one would
// abort it.
func (b *Browser) openReady(ctx context.Context, id target.ID, url string) error {
	opened := make(chan bool, 1)
	b.targets.Open(b.ctx, id, url, func(ready bool) { opened <- ready })
	select {
	case ready := <-opened:
		if !ready {
			return errNotReady
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// errNotReady is the error for a tab that did not get its setups in time.
var errNotReady = errors.New("the tab did not become ready in time")

// Screenshot returns a JPEG of the tab in front, with its URL and title. A tab that has
// not painted yet has no image, so the call is repeated until ctx ends.
func (b *Browser) Screenshot(ctx context.Context) (jpeg []byte, url, title string, err error) {
	again := time.NewTicker(screenshotPause)
	defer again.Stop()
	for most := screenshotAttempt; ; most *= 2 {
		attempt, cancel := context.WithTimeout(ctx, most)
		jpeg, url, title, err = b.screenshot(attempt)
		unanswered := attempt.Err() != nil && ctx.Err() == nil
		cancel()
		var refused *cdproto.Error
		if !unanswered && !errors.As(err, &refused) {
			return jpeg, url, title, asBrowserFault(ctx, err, "browser.screenshot", "the screenshot could not be taken")
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, "", "", asBrowserFault(ctx, err, "browser.screenshot", "the screenshot could not be taken")
		}
	}
}

var errForeignFront = fault.New(fault.BrowserFailed, "browser.screenshot", "the page in front is at an address that sessions may not show")

func (b *Browser) screenshot(ctx context.Context) (jpeg []byte, url, title string, err error) {
	err = b.front(ctx, func(s cdp.Session, t *target.Info) error {
		if !b.mux.Allowed(t.TargetID) {
			return errForeignFront
		}
		quality := int64(screenshotQuality)
		shot, err := cdp.Call(ctx, s, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormatJpeg, Quality: &quality})
		if err == nil && !b.mux.Allowed(t.TargetID) {
			return errForeignFront // it navigated in the meantime
		}
		jpeg, url, title = shot.Data, t.URL, t.Title
		return err
	})
	return jpeg, url, title, err
}

// front attaches to the tab in front for the duration of do. If no tab is open, it opens
// a blank one.
func (b *Browser) front(ctx context.Context, do func(cdp.Session, *target.Info) error) error {
	if err := b.tabs.closeLeftover(ctx); err != nil {
		return err
	}
	return capture.WithFrontTab(ctx, b.reader(), do)
}

// asBrowserFault adds a code to a CDP error: timeout if ctx exceeded its deadline, else
// browser_failed.
func asBrowserFault(ctx context.Context, err error, op, message string) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.Wrap(err, fault.Timeout, op, message+" in time")
	case errors.As(err, &known):
		return err
	default:
		return fault.Wrap(err, fault.BrowserFailed, op, message)
	}
}
