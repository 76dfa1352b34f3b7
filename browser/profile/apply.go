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

// ApplyResult is what a restore has changed in a profile before Chrome opens it.
type ApplyResult struct {
	Verdict
	// LocalLines has the report lines of the localStorage that was written into the
	// profile. RemainingAreas has the areas that only Chrome can write.
	LocalLines     []state.Component
	RemainingAreas []state.Area
	// Changed lists the folders in the user data directory that were written. They belong
	// to the daemon; the caller must give them to Chrome's user.
	Changed []string
}

// Apply reconciles a document with a profile that no Chrome has opened yet, and changes
// the profile accordingly. It removes stores that do not hold what was saved. When Chrome
// finds such damage later, it discards the store together with the state applied to it.
// Apply also writes the localStorage areas that are taken from the document.
func Apply(ctx context.Context, userDataDir string, doc state.Document, found inspect.Profile, now time.Time) (a ApplyResult, err error) {
	if !doc.Complete {
		return a, nil // nothing was read over CDP
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
	if err := a.removeStale(ctx, userDataDir); err != nil {
		return a, err
	}
	if areas := a.areas(doc, found); len(areas) > 0 || a.Broken.LocalStorage || found.LocalStorage.Truncated {
		return a, a.ApplyLocal(ctx, userDataDir, areas, now)
	}
	return a, nil
}

// removeStale removes from the profile the sessionStorage that the document's replaces. If
// that is not possible, the profile's sessionStorage stays.
func (a *ApplyResult) removeStale(ctx context.Context, userDataDir string) error {
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
		a.Unstored[i].Apply = u.Apply && !a.Forget[u.StorageKey]
	}
	return nil
}

// areas lists the localStorage areas to write into a profile: those taken from the
// document. If the whole database is written anew, it adds what could still be read on
// disk of other origins.
func (a *ApplyResult) areas(doc state.Document, found inspect.Profile) []state.Area {
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

// ApplyLocal writes localStorage areas into the profile of a user data directory. No
// Chrome may have opened it yet.
func (a *ApplyResult) ApplyLocal(ctx context.Context, userDataDir string, areas []state.Area, now time.Time) error {
	root, err := os.OpenRoot(Path(userDataDir))
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, "profile.apply", "the profile cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	if a.LocalLines, a.RemainingAreas, err = localstorage.Write(ctx, root, areas, now); err != nil {
		return err
	}
	a.Changed = append(a.Changed, path.Join(Folder(userDataDir), path.Dir(localstorage.Folder)))
	return nil
}
