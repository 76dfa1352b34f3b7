// Package inspect counts what a profile at rest holds, without Chrome and without
// changing the profile. It reads the SQLite databases, LevelDBs, JSON files and folders
// in which Chrome keeps each kind of state. So a save can say what the profile held
// before archiving it, and a restore can say what is damaged before Chrome reads it.
//
// The places and formats are those found in Chromium 156. State in an unknown format is
// reported as not counted, never as lost or complete. The input is not trusted, because a
// profile may be an upload: files are bounded, and links are not followed out of the
// profile.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Profile is what was read of a profile.
type Profile struct {
	Inventory state.Inventory
	// LocalStorage has the localStorage of every origin, with or without an open tab. If
	// the database is damaged, it has what could still be read. Its areas are nil if
	// there is no database or it was not read; its holding says why.
	LocalStorage localstorage.Contents
	// SessionStorage has the sessionStorage of all tabs. It is not Known if the database
	// is damaged or was not read.
	SessionStorage sessionstorage.Contents
	// Cookies is the whole cookie jar; nil if it is damaged or was not read completely.
	Cookies []state.Cookie
	// CookiesAt is when the newest cookie was created or changed; zero if unknown.
	CookiesAt time.Time
	// AllCookies is the same jar, but also present if some values cannot be read.
	// UnreadableCookies has the reasons, by the cookies' identities.
	AllCookies        []state.Cookie
	UnreadableCookies map[string]string
}

// Read reads the profile in a folder (…/Default). The files must not change meanwhile:
// Chrome has closed them, is frozen, or has not opened them yet. Read fails only if the
// folder cannot be opened or ctx ends.
func Read(ctx context.Context, dir string) (Profile, error) {
	const op = "inspect.read"
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Profile{}, fault.Wrap(err, fault.StoreFailed, op, "the profile cannot be read")
	}
	defer func() { _ = root.Close() }() // only a handle
	s := survey{ctx: ctx, root: root, fsys: plainFiles{root.FS()}, dir: dir}
	// The kinds are read in parallel: most of the time is spent waiting for files.
	kinds := []func(*survey){(*survey).local, (*survey).sessionStorage, (*survey).indexedDB, (*survey).serviceWorkers,
		(*survey).caches, (*survey).files, (*survey).cookies, (*survey).databases, (*survey).settings}
	parts := make([]survey, len(kinds))
	var group errgroup.Group
	group.SetLimit(4)
	for i, kind := range kinds {
		parts[i] = s
		group.Go(func() error {
			kind(&parts[i])
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails: what is unknown is in its holdings
	p := Profile{Inventory: state.Inventory{}}
	for _, part := range parts {
		p.Inventory = append(p.Inventory, part.found...)
		if part.localStorage.Commits != nil {
			p.LocalStorage = part.localStorage
		}
		if part.tabsStorage.Known() {
			p.SessionStorage = part.tabsStorage
		}
		if part.jar != nil {
			p.AllCookies, p.UnreadableCookies, p.CookiesAt = part.jar, part.unreadable, part.jarAt
			if len(part.unreadable) == 0 {
				p.Cookies = part.jar
			}
		}
	}
	p.Inventory = merge(p.Inventory)
	return p, fault.Wrap(ctx.Err(), fault.Timeout, op, "the profile was not read in time")
}

// Settings reads only what is in JSON files: the settings with permissions and zoom
// levels, the bookmarks, HSTS. A missing profile has none.
func Settings(ctx context.Context, dir string) (state.Inventory, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return state.Inventory{}, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, "inspect.settings", "the profile cannot be read")
	}
	defer func() { _ = root.Close() }() // only a handle
	s := survey{ctx: ctx, root: root, fsys: plainFiles{root.FS()}, dir: dir}
	s.settings()
	return merge(s.found), nil
}

// merge adds up holdings of the same component and origin that are in several places: an
// origin's own store and those of its buckets.
func merge(all state.Inventory) state.Inventory {
	all.Sort()
	out := all[:0]
	for _, h := range all {
		if n := len(out); n > 0 && out[n-1].Component == h.Component && out[n-1].Origin == h.Origin {
			last := &out[n-1]
			last.Items += h.Items
			last.Damage = cmp.Or(last.Damage, h.Damage)
			last.Uncounted = cmp.Or(last.Uncounted, h.Uncounted)
			continue
		}
		out = append(out, h)
	}
	return out
}

// survey is a reading of one part of a profile.
type survey struct {
	ctx  context.Context
	root *os.Root
	fsys fs.FS
	dir  string

	found []state.Holding
	jar   []state.Cookie
	jarAt time.Time
	// unreadable has the cookies whose value is encrypted with another key, with the
	// reason.
	unreadable map[string]string

	localStorage localstorage.Contents
	tabsStorage  sessionstorage.Contents
}

func (s *survey) add(h state.Holding) { s.found = append(s.found, h) }

// counts adds a holding for each origin. A damaged store does not show whose data is
// lost, so every origin's holding gets the damage. If no origin is left, or the store is
// uncounted, one holding without an origin gets it.
func (s *survey) counts(component string, byOrigin map[string]int, damage, uncounted string) {
	if uncounted != "" {
		byOrigin = nil // a partial count means nothing
	}
	for origin, n := range byOrigin {
		s.add(state.Holding{Component: component, Origin: origin, Items: n, Damage: damage, Uncounted: uncounted})
	}
	if len(byOrigin) == 0 && damage+uncounted != "" {
		s.add(state.Holding{Component: component, Damage: damage, Uncounted: uncounted})
	}
}

// exists reports whether the profile has a file or folder.
func (s *survey) exists(name string) bool {
	_, err := fs.Stat(s.fsys, name)
	return err == nil
}

// timeUp reports whether the time is up. A file can name the same thing any number of
// times, and each is read until then.
func (s *survey) timeUp() bool { return s.ctx.Err() != nil }

// names lists the names of a folder's entries. It is empty if there is no folder or the
// time is up.
func (s *survey) names(dir string) []string {
	if s.timeUp() {
		return nil
	}
	entries, err := fs.ReadDir(s.fsys, dir)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
