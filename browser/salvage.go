package browser

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/filter"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

const (
	// inspectDeadline bounds the reading of a profile before Chrome has it.
	inspectDeadline = 20 * time.Second
	// maxInspections bounds how many are read at once, for profiles may be made
	// to take much memory. An ordinary one takes some ten milliseconds.
	maxInspections = 4
)

// salvage is what is known of a profile before Chrome reads it, and what of it
// the state document has to stand in for.
type salvage struct {
	found inspect.Profile
	// These do not hold what was saved. The files of the jar and of
	// sessionStorage were removed, localStorage was mended.
	cookies, local, session bool
	before
	// placed are the report lines of the localStorage that was laid into the
	// profile, and left are the areas that only Chrome can lay.
	placed []state.Component
	left   []state.Area
}

// fromDocument is the reason of report lines of what the document stood in for.
const fromDocument = "the profile's own copy was damaged or short; it was laid down from the snapshot's other one"

// inspectProfile reads a profile that no Chrome has opened yet, and removes what is
// damaged of it where the document has the same: Chrome would throw it away
// when it meets the damage, with what is laid down over it. The document's
// localStorage is laid into the profile where it wins.
func inspectProfile(ctx context.Context, dir *Dir, doc state.Document, now time.Time) (s salvage, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectDeadline)
	defer cancel()
	folder := profile.Path(dir.Profile())
	if s.found, err = inspect.Read(ctx, folder); err != nil {
		return s, err
	}
	s.localDB, s.sessionDB = inspect.GenerationOf(folder, inspect.LocalStorage), inspect.GenerationOf(folder, inspect.SessionStorage)
	if !doc.Complete {
		return s, nil // nothing was read
	}
	if doc.Datadir != state.DatadirClean { // what was read wins
		return s, s.layLocal(ctx, dir, doc.Local, now)
	}
	s.judge(doc)
	var remove []string
	for name, broken := range map[string]bool{"Cookies": s.cookies, "Session Storage": s.session} {
		if broken {
			remove = append(remove, name)
		}
	}
	if err := profile.Remove(dir.Profile(), remove...); err != nil {
		return s, err
	}
	if err := s.makeRoom(ctx, dir, doc); err != nil {
		return s, err
	}
	return s, s.layLocal(ctx, dir, s.areas(doc), now)
}

// makeRoom finds what of the tabs' sessionStorage did not reach the profile, and
// takes out what is there in its place: a script lays an area down only where
// the tab has none.
func (s *salvage) makeRoom(ctx context.Context, dir *Dir, doc state.Document) error {
	if doc.TabsByURL {
		return nil // all of it is laid down
	}
	s.unstored = s.found.SessionStorage.Lost(doc.Tabs)
	there, stale := s.found.SessionStorage.Items(), map[string]bool{}
	for _, u := range s.unstored {
		if u.Lay && there[u.StorageKey] > 0 {
			stale[u.StorageKey] = true
		}
	}
	if len(stale) == 0 {
		return nil
	}
	folder := profile.Path(dir.Profile())
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, "browser.lay", "the profile cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	done, err := sessionstorage.Forget(ctx, root, stale)
	if err != nil {
		return err
	}
	if !done {
		for i, u := range s.unstored {
			s.unstored[i].Lay = u.Lay && !stale[u.StorageKey]
		}
		return nil
	}
	s.sessionDB = inspect.GenerationOf(folder, inspect.SessionStorage)
	return dir.OwnProfile(filepath.Join(profile.Default, sessionstorage.Folder))
}

// layLocal lays localStorage into the profile, and hands its files to Chrome's
// user.
func (s *salvage) layLocal(ctx context.Context, dir *Dir, areas []state.Area, now time.Time) error {
	if len(areas) == 0 && !s.local && !s.found.LocalStorage.Cut {
		return nil
	}
	const op = "browser.lay"
	folder := profile.Path(dir.Profile())
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the profile cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	if s.placed, s.left, err = localstorage.Lay(ctx, root, areas, now); err != nil {
		return err
	}
	s.localDB = inspect.GenerationOf(folder, inspect.LocalStorage)
	return dir.OwnProfile(filepath.Join(profile.Default, filepath.Dir(localstorage.Folder)))
}

// judge decides what the document stands in for: a store that was read and is
// damaged, or that lacks what the document had from this very disk. A store
// that was not read is Chrome's to open as it is.
func (s *salvage) judge(doc state.Document) {
	_, s.cookies = s.found.Inventory.Damaged(state.ComponentCookies)
	_, s.local = s.found.Inventory.Damaged(state.ComponentLocalStorage)
	_, s.session = s.found.Inventory.Damaged(state.ComponentSessionStorage)
	s.cookies = s.cookies || doc.IsFromDisk(state.ComponentCookies) && s.lacksCookies(doc)
	s.local = s.local || doc.IsFromDisk(state.ComponentLocalStorage) && s.lacksLocal(doc.Written())
}

// inspect reads a profile when its turn comes: readings take memory. The settings
// were read before they were prepared for Chrome.
func (s *Starter) inspect(ctx context.Context, dir *Dir, doc state.Document, settings state.Inventory) (salvage, error) {
	select {
	case s.inspections <- struct{}{}:
		defer func() { <-s.inspections }()
	case <-ctx.Done():
		return salvage{}, fault.Wrap(ctx.Err(), fault.Timeout, "browser.inspect", "the profile's turn to be read did not come in time")
	}
	found, err := inspectProfile(ctx, dir, doc, s.Now())
	found.found.Inventory = found.found.Inventory.With(settings)
	return found, err
}

// unread reports whether a component is there and was not read.
func (s salvage) unread(component string) bool {
	return slices.ContainsFunc(s.found.Inventory, func(h state.Holding) bool { return h.Component == component })
}

// lacksCookies reports whether a saved cookie is not in the jar on disk, where
// that was read or is not there.
func (s salvage) lacksCookies(doc state.Document) bool {
	if s.found.Cookies == nil && s.unread(state.ComponentCookies) {
		return false
	}
	there := map[string]bool{}
	for _, c := range s.found.Cookies {
		there[c.Identity()] = true
	}
	return slices.ContainsFunc(doc.Cookies, func(c state.Cookie) bool {
		onDisk := !c.Opaque && (!c.Session || doc.Chrome.Engine != EngineShell)
		return onDisk && !there[c.Identity()]
	})
}

// lacksLocal reports the same of localStorage.
func (s salvage) lacksLocal(doc state.Document) bool {
	if s.found.LocalStorage.Areas == nil && s.unread(state.ComponentLocalStorage) {
		return false
	}
	return slices.ContainsFunc(state.BroughtLocal(doc, append([]state.Area{}, s.found.LocalStorage.Areas...)), func(line state.Component) bool { return line.Dropped > 0 })
}

// areas are the localStorage areas to lay down over a profile that Chrome
// closed: those that did not reach it, or, of a database that does not hold what
// was saved, the document's, and of origins that it does not have, what could
// still be read on disk.
func (s salvage) areas(doc state.Document) []state.Area {
	if !s.local {
		return slices.DeleteFunc(slices.Clone(doc.Local), func(a state.Area) bool { return !slices.Contains(doc.Unwritten, a.StorageKey) })
	}
	areas := slices.Clone(doc.Local)
	for _, area := range s.found.LocalStorage.Areas {
		if !slices.ContainsFunc(doc.Local, func(a state.Area) bool { return a.StorageKey == area.StorageKey }) {
			areas = append(areas, area)
		}
	}
	return areas
}

// because gives report lines a reason where they have none.
func because(lines []state.Component, reason string) []state.Component {
	for i := range lines {
		if lines[i].Reason == "" && lines[i].Saved > 0 {
			lines[i].Reason = reason
		}
	}
	return lines
}

// prepare makes the profile of an archive ready for either engine, and inspects
// it. It returns the extensions that the profile does not know, and what was found.
func (s *Starter) prepare(ctx context.Context, dir *Dir, doc state.Document, p profile.Prepare) (unknown []string, found salvage, err error) {
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
