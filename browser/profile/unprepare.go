package profile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/stasisd/stasis/fault"
)

// Unprepare takes out of the settings files of an environment what [Prepare] writes
// for Stasis itself and what no environment brings along: Chrome's policies. The
// files on disk stay as they are; those that differ have the other content in
// [File.Data]. A settings file that cannot be read as JSON stays as it is. Chrome
// must be closed or stand still.
func Unprepare(files []File) ([]File, error) {
	out := append([]File{}, files...)
	for i, f := range out {
		if f.Name != path.Join(Default, "Preferences") && f.Name != path.Join(Default, "Secure Preferences") {
			continue
		}
		data, err := withoutPolicies(f.Path)
		if err != nil {
			return nil, fault.Wrap(err, fault.SaveFailed, "profile.unprepare", "the profile's settings could not be read")
		}
		if data != nil {
			out[i].Data, out[i].Size = data, int64(len(data))
		}
	}
	return out, nil
}

// withoutPolicies is a settings file's content without Chrome's policies; nil where
// it has none, or is not one.
func withoutPolicies(file string) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only a handle
	raw, err := read(root, filepath.Base(file))
	if errors.Is(err, errNoPreferences) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // whoever archives the file says what is wrong with it
	}
	if err != nil {
		return nil, err
	}
	prefs, err := parse(raw)
	if err != nil {
		return nil, nil //nolint:nilerr // a damaged file is archived as it is
	}
	if _, there := prefs[policyPreferences]; !there {
		return nil, nil
	}
	delete(prefs, policyPreferences)
	return json.Marshal(prefs)
}
