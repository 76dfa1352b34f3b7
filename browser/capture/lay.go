package capture

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// Lay lays the browser-wide state down over a datadir that was copied from a
// running or dead Chrome: the jar then holds exactly the document's cookies,
// and each origin that was read holds exactly the document's localStorage. No
// request leaves the browser. It must run before any page of the environment
// does.
//
// It returns a report line for each cookie domain and origin; what there was no
// time for is told in them. It fails only where the browser does not answer.
func Lay(ctx context.Context, conn Conn, doc state.Document, now time.Time) ([]state.Component, error) {
	report, err := LayCookies(ctx, conn, doc.Cookies, now)
	if err != nil {
		return nil, err
	}
	areas, err := LayLocal(ctx, conn, doc.Local)
	if err != nil {
		return nil, err
	}
	databases, err := layDatabases(ctx, conn, doc.IndexedDB)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, "capture.lay", "the databases could not be laid down")
	}
	return append(append(report, areas...), databases...), nil
}

// LayCookies makes the jar hold exactly the given cookies, and returns a report
// line for each domain, as read back.
func LayCookies(ctx context.Context, conn Conn, cookies []state.Cookie, now time.Time) ([]state.Component, error) {
	const op = "capture.lay"
	refused, err := replaceCookies(ctx, conn, cookies)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "the cookies could not be laid down")
	}
	reasons := map[string]report.Reason{}
	for _, c := range refused {
		reasons[c.Identity()] = report.Refused.With("Chrome refused the cookie")
		if c.Opaque {
			reasons[c.Identity()] = report.Unnamed.With("its partition has no name that can be set")
		}
	}
	jar, err := Cookies(ctx, conn)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "the cookies could not be read back")
	}
	return state.CompareCookies(cookies, jar, now, reasons), nil
}

// LayLocal makes the localStorage of each area's origin hold exactly the area's
// items, and returns a report line for each.
func LayLocal(ctx context.Context, conn Conn, areas []state.Area) ([]state.Component, error) {
	report, err := layLocal(ctx, conn, areas)
	return report, fault.Wrap(err, fault.BrowserFailed, "capture.lay", "the local storage could not be laid down")
}

// errNotWeb is for a storage key that no page of the web has: a document may be
// somebody's upload.
var errNotWeb = errors.New("not an origin of the web")

func webOrigin(storageKey string) bool {
	u, err := url.Parse(storageKey)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

func layLocal(ctx context.Context, conn Conn, areas []state.Area) ([]state.Component, error) {
	outcome, err := each(ctx, conn, len(areas), func(ctx context.Context, s *stub, i int) error { return s.write(ctx, areas[i]) })
	if err != nil {
		return nil, err
	}
	var lines []state.Component
	for i, area := range areas {
		line := state.Component{Name: state.ComponentLocalStorage, Origin: area.StorageKey, Saved: len(area.Items), Restored: len(area.Items)}
		if err := outcome[i]; err != nil {
			line.Restored, line.Dropped, line.Reason = 0, line.Saved, report.NotWritten.With("the origin's storage could not be written")
			switch {
			case errors.Is(err, errNoKey):
				line.Reason = report.Unnamed.With("its storage key has no name that the daemon can reach it by")
			case errors.Is(err, errNoTime):
				line.Reason = report.NoTime.Reason()
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}
