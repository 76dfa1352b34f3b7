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

// maxInspections bounds how many profiles are read at once, because a crafted profile can
// take much memory. An ordinary profile takes some ten milliseconds.
const maxInspections = 4

// inspect reads a profile. It waits for its turn, because each inspection takes memory.
// settings is the profile's inventory of settings from before they were prepared for
// Chrome. counted is for [baseline.New].
func (s *Starter) inspect(ctx context.Context, dir *Dir, doc state.Document, settings, counted state.Inventory) (baseline.Baseline, error) {
	select {
	case s.inspections <- struct{}{}:
		defer func() { <-s.inspections }()
	case <-ctx.Done():
		return baseline.Baseline{}, fault.Wrap(ctx.Err(), fault.Timeout, "browser.inspect", "the profile was not inspected in time: too many other profiles were being inspected")
	}
	b, err := baseline.New(ctx, dir.Profile(), doc, counted, s.Now())
	b.Found.Inventory = b.Found.Inventory.With(settings)
	if err != nil {
		return b, err
	}
	return b, dir.ChownProfile(b.Changed...)
}

// prepare makes the profile of an archive ready for either engine. It returns the IDs of the
// extensions that the profile does not know, and the inventory of its settings from before
// they were prepared.
func prepare(ctx context.Context, dir *Dir, p profile.Prepare) (unknown []string, settings state.Inventory, err error) {
	folder := filepath.Join(dir.Profile(), profile.Default)
	if settings, err = inspect.Settings(ctx, folder); err != nil {
		return nil, nil, err
	}
	if err := profile.ResetBroken(dir.Profile()); err != nil {
		return nil, nil, err
	}
	if err := filter.PutBack(ctx, folder); err != nil {
		return nil, nil, err
	}
	unknown, err = p.Run(ctx, dir.Profile())
	return unknown, settings, err
}

// setAside replaces a profile that a newer Chrome wrote by an empty one with the
// document's localStorage. Chrome must not have opened it yet. Only the returned document
// remains of the environment. unknown are the IDs of all extensions, as the empty profile
// knows none.
func setAside(ctx context.Context, dir *Dir, doc state.Document, o Options, proxy *profile.Proxy, now time.Time) (_ state.Document, unknown []string, base baseline.Baseline, err error) {
	const op = "browser.set_aside"
	if !doc.Complete {
		return doc, nil, base, fault.New(fault.Unsupported, op, "the environment was saved by Chrome %s, which is newer than the running Chrome, "+
			"and only its profile was saved; restore it with the same Chrome version or a newer one", doc.Chrome.Version)
	}
	folder := filepath.Join(dir.Profile(), profile.Default)
	if err := os.RemoveAll(folder); err != nil {
		return doc, nil, base, fault.Wrap(err, fault.Internal, op, "the newer Chrome's profile could not be removed")
	}
	if unknown, err = preparation(dir, state.Document{}, o, proxy).Run(ctx, dir.Profile()); err != nil {
		return doc, nil, base, err
	}
	if err := dir.ChownProfile(profile.Default); err != nil {
		return doc, nil, base, err
	}
	doc = doc.WithoutDatadir()
	if len(doc.Local) > 0 {
		if err := base.ApplyLocal(ctx, dir.Profile(), doc.Local, now); err != nil {
			return doc, nil, base, err
		}
	}
	base.NoteDatabases(dir.Profile())
	return doc, unknown, base, dir.ChownProfile(base.Changed...)
}
