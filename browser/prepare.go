package browser

import (
	"context"
	"os"
	"path/filepath"
	"time"

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

// setAside takes the profile away that a newer Chrome wrote and puts an empty
// one in its place, with the document's localStorage. Chrome has not looked at
// it yet. The document then stands alone, and the profile knows no extension;
// unknown are their IDs.
func setAside(ctx context.Context, dir *Dir, doc state.Document, o Options, proxy *profile.Proxy, now time.Time) (_ state.Document, unknown []string, base baseline.Baseline, err error) {
	const op = "browser.set_aside"
	if !doc.Complete {
		return doc, nil, base, fault.New(fault.Unsupported, op, "the environment was saved by Chrome %s, which is newer than the one that runs, "+
			"and nothing of it but its profile was saved: restore it with a Chrome that is as new", doc.Chrome.Version)
	}
	folder := filepath.Join(dir.Profile(), profile.Default)
	if err := os.RemoveAll(folder); err != nil {
		return doc, nil, base, fault.Wrap(err, fault.Internal, op, "the profile could not be put aside")
	}
	if unknown, err = preparation(dir, state.Document{}, o, proxy).Run(ctx, dir.Profile()); err != nil {
		return doc, nil, base, err
	}
	if err := dir.OwnProfile(profile.Default); err != nil {
		return doc, nil, base, err
	}
	doc = doc.Alone()
	if len(doc.Local) > 0 {
		if err := base.ApplyLocal(ctx, dir.Profile(), doc.Local, now); err != nil {
			return doc, nil, base, err
		}
	}
	base.NoteDatabases(dir.Profile())
	return doc, unknown, base, dir.OwnProfile(base.Changed...)
}
