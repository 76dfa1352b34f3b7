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

// Unprepare removes from an environment's settings files what [Prepare] writes for Stasis
// itself and no environment may contain: Chrome's policies, and that nothing is printed.
// The files on disk do not change; a changed file has its new content in [File.Data]. A settings file that is not
// valid JSON stays unchanged. Chrome must be closed or frozen.
func Unprepare(files []File) ([]File, error) {
	out := append([]File{}, files...)
	for i, f := range out {
		if f.Name != path.Join(Default, "Preferences") && f.Name != path.Join(Default, "Secure Preferences") {
			continue
		}
		data, err := withoutOurs(f)
		if err != nil {
			return nil, fault.Wrap(err, fault.SaveFailed, "profile.unprepare", "the profile's settings could not be read")
		}
		if data != nil {
			out[i].Data, out[i].Size = data, int64(len(data))
		}
	}
	return out, nil
}

// contentOf returns the content that a settings file has in an archive.
func contentOf(f File) ([]byte, error) {
	if f.Data != nil {
		return f.Data, nil
	}
	root, err := os.OpenRoot(filepath.Dir(f.Path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only a handle
	return read(root, filepath.Base(f.Path))
}

// withoutOurs returns a settings file's content without what Stasis wrote into it; nil if
// it has nothing of it, or is not a settings file.
func withoutOurs(f File) ([]byte, error) {
	raw, err := contentOf(f)
	if errors.Is(err, errNoPreferences) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the archiver of the file reports what is wrong with it
	}
	if err != nil {
		return nil, err
	}
	prefs, err := parse(raw)
	if err != nil {
		return nil, nil //nolint:nilerr // a damaged file is archived unchanged
	}
	_, policies := prefs[policyPreferences]
	printing, _ := prefs[printingPreferences].(map[string]any)
	_, prints := printing[printingEnabled]
	if !policies && !prints {
		return nil, nil
	}
	delete(prefs, policyPreferences)
	delete(printing, printingEnabled)
	return json.Marshal(prefs)
}
