package filter

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/fault"
)

// asideFolder is the folder of a profile that contains the service workers of extensions
// while the headless shell uses the profile. It is archived unchanged, so that they can
// be restored even if that shell fails.
const asideFolder = "Stasis Set Aside"

const extensionScheme = "chrome-extension://"

// SetAside moves the service workers of extensions out of a profile (…/Default) at rest.
// The headless shell does not know their URL scheme. It would consider the whole database
// damaged and create an empty one (measured with 156).
func SetAside(ctx context.Context, profile string) error {
	return inProfile(profile, func(root *os.Root) error {
		if _, err := root.Lstat(workers); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		db, err := leveldb.Read(ctx, root.FS(), workers, func([]byte) bool { return true }, true)
		if err != nil || db.Damage != "" {
			return err // the shell handles a damaged database as full Chrome does
		}
		mine := extensionWorkers(db.Entries)
		if mine == nil {
			return nil
		}
		if err := root.Mkdir(asideFolder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := leveldb.Write(root, path.Join(asideFolder, "Workers"), mine); err != nil {
			return err
		}
		for key := range mine {
			if !strings.HasPrefix(key, "INITDATA_NEXT_") && key != "INITDATA_DB_VERSION" {
				delete(db.Entries, key)
			}
		}
		return rewrite(root, workers, db.Entries)
	})
}

// PutBack moves back what SetAside has moved out.
func PutBack(ctx context.Context, profile string) error {
	return inProfile(profile, func(root *os.Root) error {
		from := path.Join(asideFolder, "Workers")
		if _, err := root.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		every := func([]byte) bool { return true }
		taken, err := leveldb.Read(ctx, root.FS(), from, every, true)
		if err != nil || taken.Damage != "" {
			return errors.Join(err, root.RemoveAll(asideFolder)) // there is nothing to put back
		}
		all := map[string][]byte{}
		if _, err := root.Lstat(workers); err == nil {
			db, err := leveldb.Read(ctx, root.FS(), workers, every, true)
			if err != nil || db.Damage != "" {
				return err // Chrome empties it and installs the extensions' workers again
			}
			all = db.Entries
		}
		for key, value := range taken.Entries {
			if is, there := all[key]; !there || strings.HasPrefix(key, "INITDATA_NEXT_") && number(is) < number(value) {
				all[key] = value
			}
		}
		if err := root.MkdirAll(path.Dir(workers), 0o700); err != nil {
			return err
		}
		if err := rewrite(root, workers, all); err != nil {
			return err
		}
		return root.RemoveAll(asideFolder)
	})
}

// extensionWorkers returns the entries that belong to extensions, together with the
// counters of the database; nil if there are none.
func extensionWorkers(entries map[string][]byte) map[string][]byte {
	registrations, versions := map[string]bool{}, map[string]bool{}
	for key, value := range entries {
		if rest, ok := strings.CutPrefix(key, "REG:"+extensionScheme); ok {
			_, id, _ := strings.Cut(rest, "\x00")
			registrations[id], versions[version(value)] = true, true
		}
	}
	mine := map[string][]byte{}
	found := len(registrations) > 0
	for key, value := range entries {
		kind, rest, _ := bytes.Cut([]byte(key), []byte(":"))
		id, at, _ := strings.Cut(string(rest), "\x00")
		var own bool
		switch string(kind) {
		case "REG", "INITDATA_UNIQUE_ORIGIN":
			own = strings.HasPrefix(id, extensionScheme)
			found = found || own
		case "RES":
			own = versions[id]
		case "REGID_TO_ORIGIN", "REG_USER_DATA":
			own = registrations[id]
		case "REG_HAS_USER_DATA":
			own = registrations[at]
		default:
			own = strings.HasPrefix(key, "INITDATA_")
		}
		if own {
			mine[key] = value
		}
	}
	if !found {
		return nil
	}
	return mine
}

func number(value []byte) int64 {
	n, _ := strconv.ParseInt(string(value), 10, 64) // an invalid number counts as zero
	return n
}

// rewrite replaces a database by one with the given entries.
func rewrite(root *os.Root, dir string, entries map[string][]byte) error {
	if err := root.RemoveAll(dir); err != nil {
		return err
	}
	return leveldb.Write(root, dir, entries)
}

func inProfile(profile string, do func(*os.Root) error) error {
	const op = "filter.aside"
	root, err := os.OpenRoot(profile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the profile cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	return fault.Wrap(do(root), fault.StoreFailed, op, "the service workers of extensions could not be moved out of the profile or back")
}
