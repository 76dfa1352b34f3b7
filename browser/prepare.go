package browser

import (
	"context"
	"path/filepath"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/filter"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// maxInspections bounds how many profiles are read at once, for profiles may be made
// to take much memory. An ordinary one takes some ten milliseconds.
const maxInspections = 4

// inspect reads a profile when its turn comes: readings take memory. The settings
// were read before they were prepared for Chrome.
func (s *Starter) inspect(ctx context.Context, dir *Dir, doc state.Document, settings state.Inventory) (baseline.Baseline, error) {
	select {
	case s.inspections <- struct{}{}:
		defer func() { <-s.inspections }()
	case <-ctx.Done():
		return baseline.Baseline{}, fault.Wrap(ctx.Err(), fault.Timeout, "browser.inspect", "the profile's turn to be read did not come in time")
	}
	b, err := baseline.New(ctx, dir.Profile(), doc, s.Now())
	b.Found.Inventory = b.Found.Inventory.With(settings)
	if err != nil {
		return b, err
	}
	return b, dir.OwnProfile(b.Changed...)
}

// prepare makes the profile of an archive ready for either engine, and inspects
// it. It returns the extensions that the profile does not know, and what was found.
func (s *Starter) prepare(ctx context.Context, dir *Dir, doc state.Document, p profile.Prepare) (unknown []string, found baseline.Baseline, err error) {
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
