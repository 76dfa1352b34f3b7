package e2e

import (
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// A client that connects at once finds the session's tabs, and no tab that is about to
// close. Such a tab would never answer it. The sessions begin with the daemon's spare,
// which has such a tab. The long form does everything three times.
func TestFaultNoDyingTabs(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	site := apps.StartProbe(t)
	times := 2
	if storetest.Long() {
		times = 6
	}
	kept := ""
	for i := range times {
		body := obj{"start_url": site.URL + "/"}
		if i%2 == 1 {
			body = obj{"restore_from_environment_id": kept}
		}
		daemon.Eventually(t, grace, "the spare runs", func() bool { return len(mains(d)) == d.Spares() })
		s := begin(t, d, body)
		w := dial(t, s.CDP)
		pages := 0
		for _, info := range w.targets() {
			if info.Type == "page" {
				pages++
			}
		}
		if pages != 1 {
			t.Errorf("%v: %d pages: %+v", body, pages, w.targets())
		}
		w.close()
		if e := finish(t, d, s.ID, toFiles); i%2 == 0 {
			kept = e.Snapshot.ID
		}
	}
}
