package profile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/stasisd/stasis/fault"
)

// carried is the folder of the user data directory with the settings of an environment
// that entered a running Chrome by its gates. Chrome reads settings only at its start, so
// it runs with those of its empty profile. A save merges the two: in savedSettings are the
// environment's, in loadedSettings those of the empty profile at that time.
const (
	carried        = "Carried"
	savedSettings  = carried + "/saved"
	loadedSettings = carried + "/loaded"
	merged         = carried + ".merged" // the folder after the merge, until it is removed
)

// SettingsFiles lists the files, all JSON, that Chrome reads at its start and writes anew
// from memory.
func SettingsFiles() []string {
	return []string{"Preferences", "Secure Preferences", "PreferredApps", "SCT Auditing Pending Reports"}
}

// Carry keeps the settings of the environment in [Default], whose other files have entered
// the running Chrome's profile [Spare], for later saves. It removes [Default].
func Carry(userDataDir string) error {
	const op = "profile.carry"
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the profile's folder cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	err = errors.Join(root.MkdirAll(savedSettings, 0o700), root.MkdirAll(loadedSettings, 0o700))
	for _, name := range SettingsFiles() {
		if err == nil {
			err = ignoreMissing(root.Rename(path.Join(Default, name), path.Join(savedSettings, name)))
		}
		if err != nil {
			break
		}
		var loaded []byte
		if loaded, err = read(root, path.Join(Spare, name)); err == nil {
			err = root.WriteFile(path.Join(loadedSettings, name), loaded, 0o600)
		}
		err = ignoreMissing(err)
	}
	if err == nil {
		err = root.RemoveAll(Default)
	}
	return fault.Wrap(err, fault.StoreFailed, op, "the environment's settings could not be kept for its next save")
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// withMerged replaces the running Chrome's settings files in a list by the merged ones.
func withMerged(userDataDir string, files []File) ([]File, error) {
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only a handle
	if _, err := root.Lstat(carried); errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	for _, name := range SettingsFiles() {
		data, err := mergedSettings(root, name)
		if err != nil {
			return nil, err
		}
		if data == nil {
			continue
		}
		at := slices.IndexFunc(files, func(f File) bool { return f.Name == path.Join(Default, name) })
		if at < 0 {
			file := filepath.Join(userDataDir, filepath.FromSlash(savedSettings), name)
			info, err := os.Lstat(file)
			if err != nil {
				return nil, err
			}
			files = append(files, File{Name: path.Join(Default, name), Path: file, Mode: info.Mode().Perm(), info: info})
			at = len(files) - 1
		}
		files[at].Data, files[at].Size = data, int64(len(data))
	}
	return files, nil
}

// mergeOnDisk writes the merged settings into the profile, whose Chrome has ended.
func mergeOnDisk(userDataDir string) error {
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only a handle
	if err := root.RemoveAll(merged); err != nil {
		return err
	}
	if _, err := root.Lstat(carried); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range SettingsFiles() {
		data, err := mergedSettings(root, name)
		if err == nil && data != nil {
			err = replace(root, path.Join(Folder(userDataDir), name), data)
		}
		if err != nil {
			return err
		}
	}
	// A process that ends here leaves all of the folder or none of it, and the next call
	// merges the same again.
	return errors.Join(root.Rename(carried, merged), root.RemoveAll(merged))
}

// replace writes a file as a whole or not at all.
func replace(root *os.Root, file string, data []byte) error {
	whole := path.Join(carried, "whole")
	if err := root.WriteFile(whole, data, 0o600); err != nil {
		return err
	}
	return root.Rename(whole, file)
}

// mergedSettings returns the content of a settings file with the changes of the session;
// nil if the environment has no such file.
func mergedSettings(root *os.Root, name string) ([]byte, error) {
	saved, err := readJSON(root, path.Join(savedSettings, name))
	if err != nil || saved == nil {
		return nil, err
	}
	loaded, err := readJSON(root, path.Join(loadedSettings, name))
	if err != nil {
		return nil, err
	}
	running, err := readJSON(root, path.Join(Spare, name))
	if err != nil {
		return nil, err
	}
	if running == nil { // Chrome has not written it
		return json.Marshal(saved)
	}
	return json.Marshal(merge(saved, loaded, running, false))
}

// readJSON returns the value in a file; nil if there is no such file or it is not JSON.
func readJSON(root *os.Root, file string) (any, error) {
	raw, err := read(root, file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoPreferences) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(raw), nil
}

// scores are the settings of sites in which Chrome counts visits. A new profile's counts must
// not replace the environment's.
var scores = map[string]bool{"site_engagement": true, "media_engagement": true}

// bySite are the settings that have a key for each site. A site that is new in the session
// was visited there.
var bySite = map[string]bool{"content_settings": true, "per_host_zoom_levels": true}

// merge merges the changes from loaded to running into saved. A value that running has and
// loaded lacks is either a change of the session or one of those that Chrome sets by itself
// in every new profile, so there the saved value stays. sites: these are settings of sites.
func merge(saved, loaded, running any, sites bool) any {
	into, ok := saved.(map[string]any)
	from, also := running.(map[string]any)
	switch {
	case reflect.DeepEqual(loaded, running): // the session changed nothing
		return saved
	case !ok || !also:
		return running
	}
	base, _ := loaded.(map[string]any)
	out := map[string]any{}
	for key, value := range into {
		_, was := base[key]
		if _, is := from[key]; is || !was {
			out[key] = value
		}
	}
	for key, value := range from {
		was, loaded := base[key]
		is, has := into[key]
		_, nested := is.(map[string]any)
		switch {
		case loaded && reflect.DeepEqual(was, value):
		case !has:
			out[key] = value
		case loaded || sites || nested:
			out[key] = merge(is, was, value, (sites || bySite[key]) && !scores[key])
		}
	}
	return out
}
