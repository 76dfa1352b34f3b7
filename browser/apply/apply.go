// Package apply writes saved state into a running browser over CDP.
//
// [All] writes what belongs to the whole browser, [TabScript] what belongs to one tab.
// The package enables no CDP domain that a page could notice, and sends no request to a
// site.
package apply

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/hiddentab"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// All writes the browser-wide state over a profile that was copied from a running or dead
// Chrome. Afterwards the cookie jar holds exactly the document's cookies, and each origin
// that was read holds exactly the document's localStorage. No request leaves the browser.
// All must run before any page of the environment does.
//
// It returns a report line for each cookie domain and origin. A line says so if the time
// ran out before its state was written. All fails only if the browser does not answer.
func All(ctx context.Context, conn hiddentab.Conn, doc state.Document, now time.Time) ([]state.Component, error) {
	report, err := Cookies(ctx, conn, doc.Cookies, now)
	if err != nil {
		return nil, err
	}
	areas, err := LocalStorage(ctx, conn, doc.Local)
	if err != nil {
		return nil, err
	}
	dbs, err := databases(ctx, conn, doc.IndexedDB)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, "apply.databases", "the databases could not be written")
	}
	return append(append(report, areas...), dbs...), nil
}
