package profile

import (
	"context"
	"os"
	"path"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Applied is what a restore has made of a profile before Chrome opens it.
type Applied struct {
	Verdict
	// Placed are the report lines of the localStorage that was written into the
	// profile. Left are the areas that only Chrome can write.
	Placed []state.Component
	Left   []state.Area
	// Changed names the folders in the user data directory that were written. They
	// belong to the daemon: handing them to Chrome's user is the caller's.
	Changed []string
}

// Apply reconciles a document with a profile that no Chrome has opened yet, and
// changes the profile accordingly. It removes stores that do not hold what was saved:
// Chrome would throw a damaged one away when it meets the damage, with what is
// applied over it. It writes the document's localStorage where that is taken.
func Apply(ctx context.Context, userDataDir string, doc state.Document, found inspect.Profile, now time.Time) (a Applied, err error) {
	if !doc.Complete {
		return a, nil // nothing was read
	}
	a.Verdict = Reconcile(Copies{Document: doc, Found: found})
	var broken []string
	if a.Broken.Cookies {
		broken = append(broken, "Cookies")
	}
	if a.Broken.SessionStorage {
		broken = append(broken, sessionstorage.Folder)
	}
	if err := Remove(userDataDir, broken...); err != nil {
		return a, err
	}
	if err := a.makeRoom(ctx, userDataDir); err != nil {
		return a, err
	}
	if areas := a.areas(doc, found); len(areas) > 0 || a.Broken.LocalStorage || found.LocalStorage.Cut {
		return a, a.ApplyLocal(ctx, userDataDir, areas, now)
	}
	return a, nil
}

// makeRoom takes out of the profile the sessionStorage in whose place the document's
// is applied. Where that cannot be, the profile's stays.
func (a *Applied) makeRoom(ctx context.Context, userDataDir string) error {
	if len(a.Forget) == 0 {
		return nil
	}
	done, err := forgetSession(ctx, Path(userDataDir), a.Forget)
	if err != nil {
		return err
	}
	if done {
		a.Changed = append(a.Changed, path.Join(Folder(userDataDir), sessionstorage.Folder))
		return nil
	}
	for i, u := range a.Unstored {
		a.Unstored[i].Lay = u.Lay && !a.Forget[u.StorageKey]
	}
	return nil
}

// areas are the localStorage areas to write into a profile: those that are taken from
// the document, and where the whole database is made anew, of other origins what
// could still be read on disk.
func (a *Applied) areas(doc state.Document, found inspect.Profile) []state.Area {
	areas := slices.DeleteFunc(slices.Clone(doc.Local), func(area state.Area) bool { return a.Local[area.StorageKey] == FromProfile })
	if !a.Broken.LocalStorage {
		return areas
	}
	for _, area := range found.LocalStorage.Areas {
		if _, both := a.Local[area.StorageKey]; !both {
			areas = append(areas, area)
		}
	}
	return areas
}

// ApplyLocal writes localStorage areas into the profile of a user data directory that
// no Chrome has opened yet.
func (a *Applied) ApplyLocal(ctx context.Context, userDataDir string, areas []state.Area, now time.Time) error {
	root, err := os.OpenRoot(Path(userDataDir))
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, "profile.apply", "the profile cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	if a.Placed, a.Left, err = localstorage.Lay(ctx, root, areas, now); err != nil {
		return err
	}
	a.Changed = append(a.Changed, path.Join(Folder(userDataDir), path.Dir(localstorage.Folder)))
	return nil
}
