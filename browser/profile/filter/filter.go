// Package filter removes from a profile at rest what a selection of origins leaves out,
// on disk and before any Chrome reads it.
//
// State in separate files is removed with the files. In databases shared by all origins
// only the wanted rows are kept. These files are rewritten, so that their free space
// contains nothing of other origins. State that cannot be split by origin is removed:
// history, bookmarks, autofill, HSTS, the tabs' session files and sessionStorage, files
// that a later Chrome adds, and damaged files. Extensions and Chrome's own settings
// belong to no origin and stay.
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

// kept lists the files and folders of a profile that stay or are filtered.
var kept = map[string]bool{
	"Cookies": true, "Login Data": true, "Preferences": true, "Secure Preferences": true,
	"IndexedDB": true, "File System": true, "Local Storage": true, "Service Worker": true, "WebStorage": true,
	"DNR Extension Rules": true, "Extension Cookies": true, "Extensions": true, "Extension Rules": true, "Extension Scripts": true, "Extension State": true,
	"Local Extension Settings": true, "Sync Extension Settings": true, "Managed Extension Settings": true,
}

// run is the filtering of one profile.
type run struct {
	root      *os.Root
	dir       string
	selection state.Selection
	lost      []state.Component
}

// Run removes from the profile of a folder (…/Default) what is not selected. owners has
// the storage keys of the stores' entries, by their names relative to that folder. The
// files must not change meanwhile, and the caller must be able to write them.
//
// Run returns a report line for each database that it had to remove, because the database
// is damaged or larger than the limits (sqlite.MaxFile, leveldb.MaxEntries). It fails
// only if the files cannot be written, or with ctx.
func Run(ctx context.Context, dir string, stores []string, owners map[string]string, selection state.Selection) ([]state.Component, error) {
	const op = "filter.run"
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	s := &run{root: root, dir: dir, selection: selection}
	for _, step := range []func(context.Context) error{
		s.removeUnknown, func(context.Context) error { return s.removeUnowned(stores, owners) }, s.localStorage, s.fileSystem, s.workers,
		s.databases, s.preferences,
	} {
		err := step(ctx)
		if ctx.Err() != nil {
			return nil, fault.Wrap(ctx.Err(), fault.Timeout, op, "the profile was not filtered in time")
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.StoreFailed, op, "the profile could not be filtered")
		}
	}
	return s.lost, nil
}

// reportRemoved records a database that was removed as a whole, and why.
func (s *run) reportRemoved(name, why string) {
	s.lost = append(s.lost, state.Component{Name: state.ComponentDatadir, Origin: "", Saved: 1, Dropped: 1,
		Reason: report.LeftOut.With(report.LeftOut.Text() + ": " + name + " could not be split by origin (" + why + "), so nothing of it was kept")})
}

func (s *run) exists(name string) bool {
	_, err := s.root.Lstat(name)
	return err == nil
}

// remove removes the unwanted entries of a folder.
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

// removeUnknown removes everything that is not in kept.
func (s *run) removeUnknown(context.Context) error {
	return s.remove(".", func(name string) bool {
		for _, beside := range []string{"-journal", "-wal", "-shm"} {
			name = strings.TrimSuffix(name, beside)
		}
		return kept[name]
	})
}

// lists has the databases that record the owners of the stores' entries.
var lists = map[string]bool{"File System/Origins": true, "WebStorage/QuotaManager": true,
	"WebStorage/QuotaManager-journal": true, "WebStorage/QuotaManager-wal": true, "WebStorage/QuotaManager-shm": true}

// removeUnowned removes the stores' entries whose owner is not selected or not known.
func (s *run) removeUnowned(stores []string, owners map[string]string) error {
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
