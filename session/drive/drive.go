// Package drive makes single calls to the browsers of live sessions, without a CDP
// client: navigations, screenshots, and what Chrome answers at its debugging port.
package drive

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/access"
)

// Chrome is the part of a live session's browser that this package uses.
type Chrome interface {
	// Version is the browser's version; Protocol is the version of CDP.
	Version() string
	Protocol() string
	UserAgent() string
	// Navigate navigates the active tab to a URL and returns the final URL.
	Navigate(ctx context.Context, url string) (at string, err error)
	Screenshot(ctx context.Context) (jpeg []byte, url, title string, err error)
	Pages(ctx context.Context) ([]browser.Page, error)
}

// Sessions gives access to the browsers of live sessions.
type Sessions interface {
	// WithBrowser calls do with the browser of a live session, thawed, if the caller has the
	// permission. The context of do ends after 30 seconds, and when the session starts to
	// end. An ended session is session_not_running.
	WithBrowser(ctx context.Context, c access.Caller, id string, p access.Permission, do func(context.Context, Chrome) error) error
}

// Driver drives the browsers of live sessions. Its methods are safe for concurrent use.
type Driver struct{ sessions Sessions }

// New makes a Driver.
func New(sessions Sessions) *Driver { return &Driver{sessions} }

// Screenshot is a JPEG of the active tab.
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

// Navigate navigates the active tab to a URL and returns the final URL. The caller needs
// the permission to drive the session.
func (d *Driver) Navigate(ctx context.Context, c access.Caller, id, url string) (at string, err error) {
	err = d.sessions.WithBrowser(ctx, c, id, access.Drive, func(ctx context.Context, chrome Chrome) error {
		at, err = chrome.Navigate(ctx, url)
		return err
	})
	return at, err
}

// Screenshot takes a screenshot of the active tab. The caller needs the permission to
// look at the session.
func (d *Driver) Screenshot(ctx context.Context, c access.Caller, id string) (shot Screenshot, err error) {
	err = d.sessions.WithBrowser(ctx, c, id, access.Look, func(ctx context.Context, chrome Chrome) error {
		shot.JPEG, shot.URL, shot.Title, err = chrome.Screenshot(ctx)
		return err
	})
	return shot, err
}

// Pages lists the open tabs. The caller needs the permission to drive the session.
func (d *Driver) Pages(ctx context.Context, c access.Caller, id string) ([]Page, error) {
	pages := []Page{}
	err := d.sessions.WithBrowser(ctx, c, id, access.Drive, func(ctx context.Context, chrome Chrome) error {
		open, err := chrome.Pages(ctx)
		for _, p := range open {
			pages = append(pages, Page{ID: p.ID, Type: "page", Title: p.Title, URL: p.URL})
		}
		return err
	})
	return pages, err
}

// BrowserVersion returns what GET …/json/version shows. The caller needs the permission
// to drive the session.
func (d *Driver) BrowserVersion(ctx context.Context, c access.Caller, id string) (product, protocolVersion, userAgent string, err error) {
	err = d.sessions.WithBrowser(ctx, c, id, access.Drive, func(_ context.Context, chrome Chrome) error {
		product, protocolVersion, userAgent = "Chrome/"+chrome.Version(), chrome.Protocol(), chrome.UserAgent()
		return nil
	})
	return product, protocolVersion, userAgent, err
}
