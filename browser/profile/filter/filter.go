// Package filter takes from a profile at rest what a selection of origins leaves
// out, on disk and before any Chrome reads it.
//
// What lies in files of its own goes with them; of databases that all origins
// share only the wanted rows are kept, and the files are written anew, so that
// nothing of the others is left in their free space. What cannot be told apart
// by origin goes whole: history, bookmarks, autofill, HSTS, the tabs' session
// files and sessionStorage, whatever a later Chrome adds, and whatever is
// damaged. Extensions and Chrome's own settings belong to no origin and stay.
package filter

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// kept are the files and folders of a profile that stay or are gone through.
var kept = map[string]bool{
	"Cookies": true, "Login Data": true, "Preferences": true, "Secure Preferences": true,
	"IndexedDB": true, "File System": true, "Local Storage": true, "Service Worker": true, "WebStorage": true,
	"DNR Extension Rules": true, "Extension Cookies": true, "Extensions": true, "Extension Rules": true, "Extension Scripts": true, "Extension State": true,
	"Local Extension Settings": true, "Sync Extension Settings": true, "Managed Extension Settings": true,
}

// run is one going through of a profile.
type run struct {
	root      *os.Root
	dir       string
	selection state.Selection
	lost      []state.Component
}

// Run leaves in the profile of a folder (…/Default) what is selected. owners
// tells whose the entries of stores are, by their names from that folder. The
// files must stand still and be the caller's to write.
//
// It returns a line for each database that had to go whole: it is damaged, or
// has more than is read of one (sqlite.MaxFile, leveldb.MaxEntries). It fails
// only where the files cannot be written, or with ctx.
func Run(ctx context.Context, dir string, stores []string, owners map[string]string, selection state.Selection) ([]state.Component, error) {
	const op = "filter.run"
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	s := &run{root: root, dir: dir, selection: selection}
	for _, step := range []func(context.Context) error{
		s.known, func(context.Context) error { return s.owned(stores, owners) }, s.localStorage, s.fileSystem, s.workers,
		s.databases, s.preferences,
	} {
		err := step(ctx)
		if ctx.Err() != nil {
			return nil, fault.Wrap(ctx.Err(), fault.Timeout, op, "the profile was not gone through in time")
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile could not be gone through")
		}
	}
	return s.lost, nil
}

// lose notes a database that went whole, and why.
func (s *run) lose(name, why string) {
	s.lost = append(s.lost, state.Component{Name: state.ComponentDatadir, Origin: "", Saved: 1, Dropped: 1,
		Reason: report.LeftOut.With(report.LeftOut.Text() + ": " + name + " could not be gone through (" + why + "), so nothing of it was kept")})
}

func (s *run) exists(name string) bool {
	_, err := s.root.Lstat(name)
	return err == nil
}

// remove takes the entries of a folder away that are not wanted.
func (s *run) remove(dir string, wanted func(name string) bool) error {
	entries, err := fs.ReadDir(s.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !wanted(e.Name()) {
			if err := s.root.RemoveAll(path.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// known removes what is not known to be anybody's in particular.
func (s *run) known(context.Context) error {
	return s.remove(".", func(name string) bool {
		for _, beside := range []string{"-journal", "-wal", "-shm"} {
			name = strings.TrimSuffix(name, beside)
		}
		return kept[name]
	})
}

// lists are the databases of the stores that say whose their entries are.
var lists = map[string]bool{"File System/Origins": true, "WebStorage/QuotaManager": true,
	"WebStorage/QuotaManager-journal": true, "WebStorage/QuotaManager-wal": true, "WebStorage/QuotaManager-shm": true}

// owned removes the stores' entries whose owner is left out or not known.
func (s *run) owned(stores []string, owners map[string]string) error {
	for _, store := range stores {
		if err := s.remove(store, func(name string) bool {
			name = path.Join(store, name)
			owner, known := owners[name]
			return lists[name] || known && s.selection.HasKey(owner)
		}); err != nil {
			return err
		}
	}
	return nil
}
