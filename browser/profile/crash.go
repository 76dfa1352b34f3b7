package profile

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// jarFiles lists the files whose times show when the cookie jar was written. Its rollback
// journal is not in the list. SQLite creates and syncs the journal before it writes the
// first page of the database, so a Chrome that died in between has written nothing
// (https://www.sqlite.org/atomiccommit.html).
var jarFiles = []string{"Cookies", "Cookies-wal"}

// readDeadline bounds the reading of a whole profile.
const readDeadline = 30 * time.Second

// Reading is the last reading of a Chrome's state over CDP before it died.
type Reading struct {
	Document         state.Document
	From, Until, Now time.Time // as in [Crash]
	// Files unpacks the files of the reading's snapshot whose names accept allows. It
	// returns the user data directory, and a function that removes it.
	Files func(ctx context.Context, accept func(name string) bool) (userDataDir string, remove func(), err error)
}

// Merge combines a reading and the profile of a Chrome that died after it. Of each part
// it takes the newer copy: see [Reconcile]. It returns the document that a restore
// applies to that profile, and removes from the profile what would conflict with it. If
// it fails, it returns the reading's document.
func Merge(ctx context.Context, userDataDir string, r Reading) (state.Document, error) {
	folder := Path(userDataDir)
	found, err := readProfile(ctx, folder)
	if err != nil {
		return r.Document, err
	}
	crash := &Crash{From: r.From, Until: r.Until, Now: r.Now}
	crash.Written.Cookies = lastWritten(folder, jarFiles...)
	crash.Written.LocalStorage = lastWritten(folder, inspect.LocalStorage)
	crash.Written.SessionStorage = lastWritten(folder, inspect.SessionStorage)
	crash.Written.Tabs = lastWritten(folder, "Sessions", "Sessions_Encrypted")
	if crash.justWritten(crash.Written.Tabs) {
		if crash.Sessions, err = inspect.ReadTabs(ctx, folder); err != nil {
			return r.Document, err
		}
	}
	if crash.sessionWritten() {
		crash.SessionStorageAtReading = r.sessionStorage(ctx)
	}
	v := Reconcile(Copies{Document: r.Document, Found: found, Crash: crash})
	return v.merged(ctx, folder, r.Document)
}

// merged returns a document with the parts that the verdict takes from it, for the
// profile in a folder.
func (v Verdict) merged(ctx context.Context, folder string, read state.Document) (state.Document, error) {
	doc := read
	doc.Doubts = v.Doubts
	if v.Cookies == FromProfile {
		doc.Cookies = v.Jar
	}
	doc.Local = []state.Area{}
	for _, area := range read.Local {
		if v.Local[area.StorageKey] == FromDocument {
			doc.Local = append(doc.Local, area)
		}
	}
	doc.TabsOnDisk = v.Tabs == FromProfile
	doc.Tabs = append([]state.Tab{}, read.Tabs...)
	for i := range doc.Tabs {
		doc.Tabs[i].Session = v.Session[i]
	}
	done, err := forgetSession(ctx, folder, v.Forget)
	if err != nil {
		return read, err
	}
	if !done {
		doc.Doubts = append(doc.Doubts, state.Missed{Component: state.ComponentSessionStorage,
			Reason: "Chrome's sessionStorage files cannot be changed, so what Stasis last read over CDP is restored only in tabs that Chrome had not written yet"})
	}
	return doc, nil
}

// forgetSession removes the sessionStorage of some storage keys from the profile in a
// folder. done is false if that is not possible.
func forgetSession(ctx context.Context, folder string, storageKeys map[string]bool) (done bool, err error) {
	if len(storageKeys) == 0 {
		return true, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return false, fault.Wrap(err, fault.StoreFailed, "profile.forget", "the profile cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	return sessionstorage.Forget(ctx, root, storageKeys)
}

// sessionStorage reads the tabs' sessionStorage from the files of the reading's snapshot.
// The result is empty (unknown) if the files are not available.
func (r Reading) sessionStorage(ctx context.Context) sessionstorage.Contents {
	userDataDir, remove, err := r.Files(ctx, func(name string) bool {
		return strings.HasPrefix(name, Default+"/"+inspect.SessionStorage+"/")
	})
	if err != nil {
		return sessionstorage.Contents{}
	}
	defer remove()
	root, err := os.OpenRoot(Path(userDataDir))
	if err != nil {
		return sessionstorage.Contents{}
	}
	defer func() { _ = root.Close() }() // only a handle
	was, err := sessionstorage.Read(ctx, root.FS())
	if err != nil {
		return sessionstorage.Contents{}
	}
	return was
}

func readProfile(ctx context.Context, folder string) (inspect.Profile, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	return inspect.Read(ctx, folder)
}

// lastWritten returns when the newest of some files and folders of a profile was written;
// the zero time if none exists.
func lastWritten(folder string, names ...string) (newest time.Time) {
	for _, name := range names {
		// A file that cannot be read counts as missing.
		_ = filepath.WalkDir(filepath.Join(folder, name), func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // as above
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			return nil
		})
	}
	return newest
}
