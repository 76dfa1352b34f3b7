package browser

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

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
