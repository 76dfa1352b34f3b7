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

// jarFiles are the files whose times say when the jar was written. Its rollback journal is
// not among them: that is begun, and brought to the disk, before the first page of the
// jar is written, so a Chrome that died meanwhile has written nothing
// (https://www.sqlite.org/atomiccommit.html).
var jarFiles = []string{"Cookies", "Cookies-wal"}

// readDeadline bounds the reading of a whole profile.
const readDeadline = 30 * time.Second

// Reading is the last reading of a Chrome over CDP before it died.
type Reading struct {
	Document         state.Document
	From, Until, Now time.Time // as in [Crash]
	// Files unpacks those files of the reading's snapshot whose names are accepted.
	// It returns the user data directory, and what removes it.
	Files func(ctx context.Context, accept func(name string) bool) (userDataDir string, remove func(), err error)
}

// Merge takes of a reading, and of the profile that a Chrome left which died after
// it, each part's newer copy: see [Reconcile]. It returns the document that a restore
// applies to that profile, and takes out of the profile what would be in its way.
// After an error the document is the reading's.
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
		crash.Was = r.sessionStorage(ctx)
	}
	v := Reconcile(Copies{Document: r.Document, Found: found, Crash: crash})
	return v.merged(ctx, folder, r.Document)
}

// merged is a document with what the verdict takes of it, for the profile in a folder.
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
			Reason: "what Chrome left of it cannot be changed, so what was read last is there only in tabs of which it had written nothing"})
	}
	return doc, nil
}

// forgetSession takes some storage keys' sessionStorage out of the profile in a folder.
// done is false where that cannot be.
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

// sessionStorage reads the tabs' sessionStorage in the files of the reading's
// snapshot; it is not known where they cannot be had.
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

// lastWritten is when the newest of some files and folders of a profile was written;
// the zero time where none is there.
func lastWritten(folder string, names ...string) (newest time.Time) {
	for _, name := range names {
		// What cannot be looked at is as if it were not there.
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
