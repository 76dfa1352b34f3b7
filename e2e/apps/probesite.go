package apps

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/apps/probe"
)

// StartProbe starts the probe site, whose pages package probe describes.
func StartProbe(t testing.TB) *probe.Site {
	t.Helper()
	site, err := probe.Start(time.Now)
	must(t, err)
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Errorf("apps: close the probe site: %v", err)
		}
	})
	return site
}
