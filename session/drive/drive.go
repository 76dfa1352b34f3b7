// Package drive uses the browsers of live sessions for single calls, without a CDP
// client: navigations, pictures, and what Chrome itself answers at its debugging port.
package drive

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/access"
)

// Chrome is the browser of a live session, as far as it is driven here.
type Chrome interface {
	// Version is that of the browser; Protocol that of CDP.
	Version() string
	Protocol() string
	UserAgent() string
	// Navigate sends the tab in front to a URL and returns where it came to.
	Navigate(ctx context.Context, url string) (at string, err error)
	Screenshot(ctx context.Context) (jpeg []byte, url, title string, err error)
	Pages(ctx context.Context) ([]browser.Page, error)
}

// Sessions are the live sessions whose browsers are driven.
type Sessions interface {
	// Lend calls do with the browser of a live session, awake, for a caller that has the
	// permission. The context of do ends after 30 seconds, and when an end of the session
	// begins. A session that has ended is session_not_running.
	Lend(ctx context.Context, c access.Caller, id string, p access.Permission, do func(context.Context, Chrome) error) error
}

// Driver drives the browsers of live sessions. Its methods are safe for concurrent use.
type Driver struct{ sessions Sessions }

// New makes a Driver of some sessions.
func New(sessions Sessions) *Driver { return &Driver{sessions} }

// Screenshot is a JPEG of the tab in front.
type Screenshot struct {
	JPEG  []byte
	URL   string
	Title string
}

// Page is one page target, as GET …/json/list shows it.
type Page struct {
	ID    string
	Type  string
	Title string
	URL   string
}

// Navigate sends the tab in front to a URL and returns where it came to. The caller
// must be allowed to drive the session.
func (d *Driver) Navigate(ctx context.Context, c access.Caller, id, url string) (at string, err error) {
	err = d.sessions.Lend(ctx, c, id, access.Drive, func(ctx context.Context, chrome Chrome) error {
		at, err = chrome.Navigate(ctx, url)
		return err
	})
	return at, err
}

// Screenshot takes a picture of the tab in front. The caller must be allowed to look at
// the session.
func (d *Driver) Screenshot(ctx context.Context, c access.Caller, id string) (shot Screenshot, err error) {
	err = d.sessions.Lend(ctx, c, id, access.Look, func(ctx context.Context, chrome Chrome) error {
		shot.JPEG, shot.URL, shot.Title, err = chrome.Screenshot(ctx)
		return err
	})
	return shot, err
}

// Pages lists the open tabs. The caller must be allowed to drive the session.
func (d *Driver) Pages(ctx context.Context, c access.Caller, id string) ([]Page, error) {
	pages := []Page{}
	err := d.sessions.Lend(ctx, c, id, access.Drive, func(ctx context.Context, chrome Chrome) error {
		open, err := chrome.Pages(ctx)
		for _, p := range open {
			pages = append(pages, Page{ID: p.ID, Type: "page", Title: p.Title, URL: p.URL})
		}
		return err
	})
	return pages, err
}

// BrowserVersion returns what GET …/json/version shows. The caller must be allowed to
// drive the session.
func (d *Driver) BrowserVersion(ctx context.Context, c access.Caller, id string) (product, protocolVersion, userAgent string, err error) {
	err = d.sessions.Lend(ctx, c, id, access.Drive, func(_ context.Context, chrome Chrome) error {
		product, protocolVersion, userAgent = "Chrome/"+chrome.Version(), chrome.Protocol(), chrome.UserAgent()
		return nil
	})
	return product, protocolVersion, userAgent, err
}
