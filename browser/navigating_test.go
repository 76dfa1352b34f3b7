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
	"github.com/stasisd/stasis/state"
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

// A reading waits for a tab that Chrome moves to another process, and has either the old page or
// the new one. Without that, some of these readings lack something on a busy machine;
// capture.TestReread has each case.
func TestCaptureBetweenProcesses(t *testing.T) {
	r := newRigOfEither(t)
	s := newSite(t, map[string]string{"/one": seen})
	other := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	b := r.fresh()
	at := "about:blank"
	read := func() state.Tab {
		t.Helper()
		doc, err := capture.Read(within(t), b.driver)
		if err != nil || len(doc.Missed) > 0 || len(doc.Tabs) != 1 {
			t.Fatalf("missed %+v, tabs %+v, %v", doc.Missed, doc.Tabs, err)
		}
		return doc.Tabs[0]
	}
	for i := range 40 {
		to := []string{s.url, other}[i%2] + "/one"
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
			tab := read()
			if tab.URL != at && tab.URL != to || len(tab.History) == 0 {
				t.Fatalf("from %s to %s, round %d: %+v", at, to, i, tab)
			}
		}
		if tab := read(); tab.URL != to || tab.History[tab.Current].URL != to {
			t.Fatalf("after the navigation to %s: %+v", to, tab)
		}
		at = to
	}
}

// A tab whose first navigation showed no page is blank, and is no reason to wait.
func TestCaptureOfATabWithoutAPage(t *testing.T) {
	r := newRigOfEither(t)
	s := newSite(t, map[string]string{"/one": seen})
	b := r.fresh()
	r.open(b, s.url+"/one")
	r.eval(b, s.url+"/one", `window.open("javascript:1"); 1`)
	doc, err := b.Capture(within(t))
	if err != nil || len(doc.Tabs) != 2 || len(doc.Missed) > 0 {
		t.Fatalf("%+v, missed %+v, %v", doc.Tabs, doc.Missed, err)
	}
	if doc.Tabs[1].URL != "about:blank" {
		t.Errorf("the tab is at %q", doc.Tabs[1].URL)
	}
}
