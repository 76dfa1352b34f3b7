package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
)

// A tab that is navigating is captured at its current page, and stays the tab in front. Chrome's
// own session files have it there too, and the new page may never load.
func TestCaptureDuringNavigation(t *testing.T) {
	r := newRigOfEither(t)
	asked := make(chan struct{}, 2)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/never" {
			asked <- struct{}{}
			<-req.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>here</title>")
	}))
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	b := r.fresh()
	r.open(b, site.URL+"/behind")
	if _, err := cdp.Call(within(t), b.driver, target.CreateTarget, target.CreateTargetParams{URL: site.URL + "/here"}); err != nil {
		t.Fatal(err)
	}
	r.eval(b, site.URL+"/here", `new Promise((done) => document.readyState === "complete" ? done("") : addEventListener("load", () => done("")))`)
	ctx, giveUp := context.WithCancel(within(t))
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = b.Navigate(ctx, site.URL+"/never") // this navigation never finishes
	}()
	<-asked
	doc, err := b.Capture(within(t))
	giveUp()
	<-over
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Tabs) != 2 {
		t.Fatalf("tabs: %+v", doc.Tabs)
	}
	tab := doc.Tabs[1]
	if !tab.Active || doc.Tabs[0].Active {
		t.Errorf("the tab in front is another: %+v", doc.Tabs)
	}
	if tab.URL != site.URL+"/here" || tab.Title != "here" || tab.History[tab.Current].URL != tab.URL {
		t.Errorf("the tab is at %s (%s), with %+v", tab.URL, tab.Title, tab.History)
	}
}

// While a page moves to another process, Chrome gives its tab no address and refuses to list its
// history. A reading that meets this waits until the page has arrived.
func TestCaptureWhileThePageArrives(t *testing.T) {
	r := newRigOfEither(t)
	s := newSite(t, map[string]string{"/one": seen})
	other := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	b := r.fresh()
	at := "about:blank"
	for i := range 40 {
		to := []string{s.url, other}[i%2] + "/one"
		pages, err := capture.Pages(within(t), b.driver)
		if err != nil || len(pages) != 1 {
			t.Fatalf("pages: %+v, %v", pages, err)
		}
		loaded := make(chan error, 1)
		go func() {
			_, err := b.Navigate(within(t), to)
			loaded <- err
		}()
		for arrived := false; !arrived; {
			select {
			case err := <-loaded:
				if err != nil {
					t.Fatal(err)
				}
				arrived = true
			default:
			}
			doc, err := capture.Read(within(t), b.driver)
			if err != nil {
				t.Fatal(err)
			}
			if len(doc.Missed) > 0 || len(doc.Tabs) != 1 || doc.Tabs[0].URL != at && doc.Tabs[0].URL != to {
				t.Fatalf("from %s to %s, round %d: missed %+v, tabs %+v", at, to, i, doc.Missed, doc.Tabs)
			}
		}
		at = to
	}
}
