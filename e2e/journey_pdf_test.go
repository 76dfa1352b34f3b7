package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
)

// TestPDFTab: a tab with a PDF is saved without a warning and restored. The frame in
// which Chrome's viewer draws never answers requests for its storage.
func TestPDFTab(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = fmt.Fprint(w, onePage)
	}))
	t.Cleanup(site.Close)
	url := site.URL + "/paper.pdf"
	s := begin(t, d, obj{"engine": browser.EngineChrome, "start_url": url})
	w := dial(t, s.CDP)
	daemon.Eventually(t, stepDeadline, "the viewer's frame that has the PDF", func() bool {
		return slices.ContainsFunc(w.targets(), func(i targetInfo) bool { return i.Type == "iframe" && i.URL == url })
	})
	saved := save(t, d, s.ID, "filesystem")
	if len(saved.Warnings) > 0 {
		t.Errorf("the save warns: %q", saved.Warnings)
	}
	again := begin(t, d, obj{"restore_from_session_id": s.ID})
	if w := dial(t, again.CDP); w.tab("/paper.pdf") == "" {
		t.Error("the tab was not restored")
	}
	finish(t, d, again.ID, throwAway)
}
