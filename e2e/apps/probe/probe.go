// Package probe serves the site of `stasis demo` (cmd/stasis/demosite) and logs its
// requests.
package probe

import (
	"time"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/e2e/apps/weblog"
)

// Site is a running site.
type Site struct {
	*demosite.Site
	Log *weblog.Log // every request that was received
}

// Start serves the site on a free loopback port until Close. now is the clock of the
// request log.
func Start(now func() time.Time) (*Site, error) {
	log := weblog.New(now)
	site, err := demosite.Start(log.Wrap)
	if err != nil {
		return nil, err
	}
	return &Site{Site: site, Log: log}, nil
}
