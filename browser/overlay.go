package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/apply"
	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// overlay lays down what the profile lacks and the document has, while every
// tab is held, and reports what came back of what belongs to the whole browser.
func (b *Browser) overlay(ctx context.Context, doc state.Document) (report []state.Component, err error) {
	s := &b.baseline
	if doc.Datadir != state.DatadirClean && doc.Complete {
		rest := doc
		rest.Local = s.Left
		if report, err = apply.All(ctx, b.driver, rest, b.now()); err != nil {
			return nil, err
		}
		report = append(report, s.Placed...)
		s.NoteLocal(b.dir.Profile(), report)
	}
	if s.Broken.Cookies {
		lines, err := apply.Cookies(ctx, b.driver, doc.Cookies, b.now())
		if err != nil {
			return nil, err
		}
		report = append(report, fromDocument(lines)...)
	}
	if err := b.addSessionCookies(ctx, doc); err != nil {
		return nil, err
	}
	if doc.Datadir == state.DatadirClean {
		lines, err := apply.LocalStorage(ctx, b.driver, s.Left)
		if err != nil {
			return nil, err
		}
		if lines = append(lines, s.Placed...); len(lines) > 0 {
			s.NoteLocal(b.dir.Profile(), lines)
		}
		report = append(report, fromDocument(lines)...)
	}
	if s.Jar, err = capture.Cookies(ctx, b.driver); err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the cookies could not be read back")
	}
	if doc.Datadir == state.DatadirClean && doc.Complete {
		if !s.Broken.Cookies {
			report = append(report, state.CompareCookies(doc.Cookies, s.Jar, b.now(), nil)...)
		}
		if !s.Broken.LocalStorage {
			report = append(report, state.BroughtLocal(s.Written(doc), s.Found.LocalStorage.Areas)...)
		}
	}
	lines := state.Brought(doc, s.Found.Inventory)
	if !doc.Complete {
		lines = s.UnreadCookies(lines, b.now())
	}
	return append(report, lines...), nil
}

// fromDocument gives report lines without a reason that of what the document stood
// in for.
func fromDocument(lines []state.Component) []state.Component {
	for i := range lines {
		if lines[i].Reason.Code == "" && lines[i].Saved > 0 {
			lines[i].Reason = report.FromDocument.Reason()
		}
	}
	return lines
}
