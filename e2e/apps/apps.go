// Package apps starts web applications for a test to log in to: real ones (package
// webapp), and a probe site that stores data in every kind of storage. They are stopped
// when the test ends.
package apps

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/apps/probe"
	"github.com/stasisd/stasis/e2e/apps/webapp"
)

// Start starts one of the applications of package webapp.
func Start(t testing.TB, start func(dir string) (*webapp.App, error)) *webapp.App {
	t.Helper()
	app, err := start(t.TempDir())
	must(t, err)
	t.Cleanup(app.Close)
	return app
}

// StartProbe starts the probe site; see package probe.
func StartProbe(t testing.TB) *probe.Site {
	t.Helper()
	site, err := probe.Start(time.Now)
	must(t, err)
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Errorf("apps: cannot close the probe site: %v", err)
		}
	})
	return site
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("apps: %v", err)
	}
}
