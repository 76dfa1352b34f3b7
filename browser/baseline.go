package browser

import (
	"context"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/filter"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

const (
	// inspectDeadline bounds the reading of a profile before Chrome has it.
	inspectDeadline = 20 * time.Second
	// maxInspections bounds how many are read at once, for profiles may be made
	// to take much memory. An ordinary one takes some ten milliseconds.
	maxInspections = 4
)

// baseline is what an environment held before Chrome opened its profile and before
// any page of it ran. It decides who made a difference that is found later.
type baseline struct {
	found inspect.Profile
	// Applied is what was taken from the document, and what of that is in the
	// profile already.
	profile.Applied
	// jar is what the profile's cookies were.
	jar []state.Cookie
	// localDB and sessionDB are the databases that hold the storage: whole, or
	// what was damaged in them had been replaced. What such a database held Chrome
	// had, as long as it goes on with it: it brings back all of one or nothing.
	localDB, sessionDB inspect.Generation
	// refused are the storage keys whose localStorage was to be applied and could
	// not be.
	refused map[string]bool
	// byScript: a script applied all sessionStorage, Chrome brought back none.
	// laidTabs are the tabs in which a script did that.
	byScript bool
	laidTabs []laidTab
}

// newBaseline reads a profile that no Chrome has opened yet, and applies to it what is
// taken from the document.
func newBaseline(ctx context.Context, dir *Dir, doc state.Document, now time.Time) (b baseline, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectDeadline)
	defer cancel()
	if b.found, err = inspect.Read(ctx, profile.Path(dir.Profile())); err != nil {
		return b, err
	}
	if b.Applied, err = profile.Apply(ctx, dir.Profile(), doc, b.found, now); err != nil {
		return b, err
	}
	return b, b.own(dir)
}

// own hands what was written to Chrome's user, and notes which databases there are.
func (b *baseline) own(dir *Dir) error {
	folder := profile.Path(dir.Profile())
	b.localDB, b.sessionDB = inspect.GenerationOf(folder, inspect.LocalStorage), inspect.GenerationOf(folder, inspect.SessionStorage)
	return dir.OwnProfile(b.Changed...)
}

// inspect reads a profile when its turn comes: readings take memory. The settings
// were read before they were prepared for Chrome.
func (s *Starter) inspect(ctx context.Context, dir *Dir, doc state.Document, settings state.Inventory) (baseline, error) {
	select {
	case s.inspections <- struct{}{}:
		defer func() { <-s.inspections }()
	case <-ctx.Done():
		return baseline{}, fault.Wrap(ctx.Err(), fault.Timeout, "browser.inspect", "the profile's turn to be read did not come in time")
	}
	b, err := newBaseline(ctx, dir, doc, s.Now())
	b.found.Inventory = b.found.Inventory.With(settings)
	return b, err
}

// written is a document without the localStorage that Chrome had not written when it
// closed the profile.
func (b *baseline) written(doc state.Document) state.Document {
	doc.Unwritten = b.Unwritten
	return doc.Written()
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

// prepare makes the profile of an archive ready for either engine, and inspects
// it. It returns the extensions that the profile does not know, and what was found.
func (s *Starter) prepare(ctx context.Context, dir *Dir, doc state.Document, p profile.Prepare) (unknown []string, found baseline, err error) {
	folder := filepath.Join(dir.Profile(), profile.Default)
	// Before they are prepared for this session.
	settings, err := inspect.Settings(ctx, folder)
	if err != nil {
		return nil, found, err
	}
	if err := profile.ResetBroken(dir.Profile()); err != nil {
		return nil, found, err
	}
	if err := filter.PutBack(ctx, folder); err != nil {
		return nil, found, err
	}
	if unknown, err = p.Run(ctx, dir.Profile()); err != nil {
		return nil, found, err
	}
	found, err = s.inspect(ctx, dir, doc, settings)
	return unknown, found, err
}
