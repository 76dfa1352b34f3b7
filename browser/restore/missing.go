package restore

import (
	"context"
	"slices"

	"github.com/stasisd/stasis/browser/apply"
	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// LacksStorage reports whether [Environment.ApplyMissing] opens pages to apply storage. It
// must then have Chrome's window for itself.
func (e Environment) LacksStorage(doc state.Document) bool {
	return doc.Datadir != state.DatadirClean || len(e.Baseline.RemainingAreas) > 0
}

// ApplyMissing applies what the document has and the profile lacks, while every tab is
// held. It returns report lines for all state that belongs to the whole browser.
func (e Environment) ApplyMissing(ctx context.Context, doc state.Document) (report []state.Component, err error) {
	s := e.Baseline
	if doc.Datadir != state.DatadirClean && doc.Complete {
		rest := doc
		rest.Local = s.RemainingAreas
		if report, err = apply.All(ctx, e.Driver, rest, e.Now()); err != nil {
			return nil, err
		}
		report = append(report, s.LocalLines...)
		s.NoteLocal(e.UserDataDir, report)
	}
	if s.Broken.Cookies {
		lines, err := apply.Cookies(ctx, e.Driver, doc.Cookies, e.Now())
		if err != nil {
			return nil, err
		}
		report = append(report, fromDocument(lines)...)
	}
	if err := e.addSessionCookies(ctx, doc); err != nil {
		return nil, err
	}
	if doc.Datadir == state.DatadirClean {
		lines, err := apply.LocalStorage(ctx, e.Driver, s.RemainingAreas)
		if err != nil {
			return nil, err
		}
		if lines = append(lines, s.LocalLines...); len(lines) > 0 {
			s.NoteLocal(e.UserDataDir, lines)
		}
		report = append(report, fromDocument(lines)...)
	}
	if s.Jar, err = capture.Cookies(ctx, e.Driver); err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the cookies could not be read back")
	}
	if doc.Datadir == state.DatadirClean && doc.Complete {
		if !s.Broken.Cookies {
			report = append(report, state.CompareCookies(doc.Cookies, s.Jar, e.Now(), nil)...)
		}
		if !s.Broken.LocalStorage {
			report = append(report, state.LoadedLocalStorageLines(s.WithoutUnwritten(doc), s.Found.LocalStorage.Areas)...)
		}
	}
	lines := state.LoadedLines(doc, s.Found.Inventory)
	if !doc.Complete {
		lines = s.UnreadCookies(lines, e.Now())
	}
	return append(report, lines...), nil
}

// fromDocument adds a reason to report lines that have none: the document supplied what
// the profile lacked.
func fromDocument(lines []state.Component) []state.Component {
	for i := range lines {
		if lines[i].Reason.Code == "" && lines[i].Saved > 0 {
			lines[i].Reason = report.FromDocument.Reason()
		}
	}
	return lines
}

// addSessionCookies adds session cookies if the profile's cookie jar has none. The shell
// keeps them in memory only, and deletes those that full Chrome left in the profile.
func (e Environment) addSessionCookies(ctx context.Context, doc state.Document) error {
	all := doc.Cookies
	switch {
	case doc.Complete && doc.Datadir != state.DatadirClean, e.Baseline.Broken.Cookies:
		return nil // the whole jar has been applied
	case !doc.Complete && e.Shell:
		all = e.Baseline.Found.Cookies
	case !e.Shell && doc.Chrome.Engine != engineShell:
		return nil
	}
	cookies := slices.DeleteFunc(slices.Clone(all), func(c state.Cookie) bool { return !c.Session || c.Opaque })
	if len(cookies) == 0 {
		return nil
	}
	// Refused cookies are missing from the jar, and their report line says so.
	_, err := apply.AddCookies(ctx, e.Driver, cookies)
	return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the session cookies could not be set")
}
