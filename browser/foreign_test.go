package browser

import (
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/fault"
)

// A page at an address that a session may not show is neither listed nor captured. It is
// sent to about:blank, with nothing else on its back list.
func TestForeignPage(t *testing.T) {
	r := newRigOfEither(t)
	s := newSite(t, nil)
	b := r.fresh()
	r.open(b, s.url+"/three")
	pages, err := b.Pages(within(t))
	if err != nil || len(pages) != 1 {
		t.Fatalf("%+v, %v", pages, err)
	}
	turned := make(chan target.ID, 1)
	b.mux.Hooks.OnForeign(func(id target.ID) { turned <- id }) // the page stays where it is for now
	yes, id := true, target.ID(pages[0].ID)
	at, err := cdp.Call(within(t), b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		t.Fatal(err)
	}
	_ = b.driver.Session(at.SessionID).Call(within(t), "Page.navigate", map[string]string{"url": "chrome://version"}, nil) // the block list turns it into an error page
	if got := <-turned; got != id {
		t.Errorf("OnForeign got %s, want %s", got, id)
	}
	if pages, err = b.Pages(within(t)); err != nil || len(pages) != 0 {
		t.Errorf("listed: %+v, %v", pages, err)
	}
	if _, _, _, err = b.screenshot(within(t)); !fault.Is(err, fault.BrowserFailed) {
		t.Errorf("a screenshot: %v", err)
	}
	b.guard.redirect(id)
	if pages, err = b.Pages(within(t)); err != nil || len(pages) != 1 || pages[0].URL != blankURL {
		t.Errorf("afterwards: %+v, %v", pages, err)
	}
	if _, url, _, err := b.Screenshot(within(t)); err != nil || url != blankURL {
		t.Errorf("a screenshot of %s, %v", url, err)
	}
}
