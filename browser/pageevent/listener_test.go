package pageevent

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// Pages and downloads whose end was lost, because too many events arrived at once, are
// removed anyway.
func TestPagesWithLostEndAreRemoved(t *testing.T) {
	l := New(nil, nil, time.Now)
	for n := range 3 * maxReceived {
		l.received = append(l.received,
			mux.PageEvent{Method: target.TargetCreated.Method, Target: fmt.Sprint(n), URL: "https://a.example/"},
			mux.PageEvent{Method: browser.DownloadWillBegin.Method, Params: fmt.Appendf(nil, `{"guid":"%d","suggestedFilename":"f"}`, n)})
		l.take()
	}
	if len(l.pages) > maxReceived || len(l.downloads) > maxReceived {
		t.Errorf("%d pages and %d downloads are still recorded", len(l.pages), len(l.downloads))
	}
}
