package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/view"
	"github.com/stasisd/stasis/fault"
)

// View shows the tabs to a viewer and passes the viewer's input on, until the viewer
// disconnects or ctx ends; see [view.Serve].
func (b *Browser) View(ctx context.Context, conn view.Conn, v view.Viewer) error {
	const op = "browser.view"
	if err := b.tabs.closeLeftover(ctx); err != nil {
		return err
	}
	driver, err := b.mux.Driver(ctx)
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "Chrome accepted no viewer")
	}
	defer driver.Close()
	if _, err := cdp.Call(ctx, driver, target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true}); err != nil {
		return asBrowserFault(ctx, err, op, "Chrome did not report its tabs")
	}
	return view.Serve(ctx, conn, viewed{b, driver}, v)
}

// viewed implements [view.Browser] for one viewer, who alone has the driver.
type viewed struct {
	b *Browser
	*mux.Driver
}

var _ view.Browser = viewed{}

// The methods of viewed implement [view.Browser].

func (w viewed) Tabs(ctx context.Context) ([]*target.Info, error) {
	infos, err := capture.Pages(ctx, w.Driver)
	if err != nil {
		return nil, asBrowserFault(ctx, err, "browser.view", "the tabs could not be listed")
	}
	shown := infos[:0]
	for _, t := range infos {
		if w.b.mux.Allowed(t.TargetID) {
			shown = append(shown, t)
		}
	}
	return shown, nil
}

func (w viewed) Front(ctx context.Context) (id target.ID, err error) {
	err = w.b.front(ctx, func(_ cdp.Session, t *target.Info) error { id = t.TargetID; return nil })
	return id, err
}

func (w viewed) MayShow(id target.ID) bool  { return w.b.mux.Allowed(id) }
func (w viewed) AllowedURL(url string) bool { return w.b.mux.Addresses.Allowed(url) }

func (w viewed) ClientAnswers(id target.ID) (dialogs, files bool) { return w.b.mux.ClientAnswers(id) }

func (w viewed) FilePath(name string) (string, error) { return w.b.mux.FilePath(name) }

func (w viewed) OpenTab(ctx context.Context) error {
	_, err := cdp.Call(ctx, w.Driver, target.CreateTarget, target.CreateTargetParams{URL: blankURL})
	return asBrowserFault(ctx, err, "browser.view", "the tab could not be opened")
}

func (w viewed) Now() time.Time { return w.b.now() }
