package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/apply"
	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
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
		s.laid(b.dir, report)
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
			s.laid(b.dir, lines)
		}
		report = append(report, fromDocument(lines)...)
	}
	if s.jar, err = capture.Cookies(ctx, b.driver); err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the cookies could not be read back")
	}
	if doc.Datadir == state.DatadirClean && doc.Complete {
		if !s.Broken.Cookies {
			report = append(report, state.CompareCookies(doc.Cookies, s.jar, b.now(), nil)...)
		}
		if !s.Broken.LocalStorage {
			report = append(report, state.BroughtLocal(s.written(doc), s.found.LocalStorage.Areas)...)
		}
	}
	lines := state.Brought(doc, s.found.Inventory)
	if !doc.Complete {
		lines = s.unreadCookies(lines, b.now())
	}
	return append(report, lines...), nil
}
