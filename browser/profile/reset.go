package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/stasisd/stasis/fault"
)

// ResetBroken removes the settings files of a profile that are not JSON, as Chrome itself
// would. All other files stay.
func ResetBroken(userDataDir string) error {
	const op = "profile.reset"
	if err := checkNoLink(userDataDir); err != nil {
		return err
	}
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the profile's folder cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	for _, name := range []string{"Preferences", "Secure Preferences"} {
		file := path.Join(Default, name)
		raw, err := read(root, file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && isObject(raw) {
			continue
		}
		if err := root.RemoveAll(file); err != nil {
			return fault.Wrap(err, fault.StoreFailed, op, "damaged settings could not be removed")
		}
	}
	return nil
}

func isObject(raw []byte) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}

// Remove removes files or folders of the profile, with the files that SQLite keeps beside
// them. No Chrome may have read them yet.
func Remove(userDataDir string, names ...string) error {
	const op = "profile.remove"
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the profile's folder cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	for _, name := range names {
		for _, beside := range []string{"", "-journal", "-wal", "-shm"} {
			if err := root.RemoveAll(path.Join(Default, name+beside)); err != nil {
				return fault.Wrap(err, fault.StoreFailed, op, "a damaged file could not be removed")
			}
		}
	}
	return nil
}
