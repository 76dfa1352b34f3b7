package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// Pages and downloads whose ends were lost, because too much came at once, are
// forgotten all the same.
func TestPagesWhoseEndWasLostAreForgotten(t *testing.T) {
	e := &ear{now: time.Now, pages: map[string]*pageHeard{}, downloads: map[string]string{}}
	for n := range 3 * maxHeard {
		e.heard = append(e.heard,
			mux.Heard{Method: target.TargetCreated.Method, Target: fmt.Sprint(n), URL: "https://a.example/"},
			mux.Heard{Method: browser.DownloadWillBegin.Method, Params: fmt.Appendf(nil, `{"guid":"%d","suggestedFilename":"f"}`, n)})
		e.take()
	}
	if len(e.pages) > maxHeard || len(e.downloads) > maxHeard {
		t.Errorf("%d pages and %d downloads are remembered", len(e.pages), len(e.downloads))
	}
}
