package profile

import (
	"encoding/json"
	"os"
	"path"
)

// Extension is an unpacked extension of a profile.
type Extension struct {
	ID   string // the ID that Chrome computes from the manifest's key
	Path string // absolute path of its files now
	// Enabled says whether it runs, for a profile whose own setting may be out of date.
	// Nil keeps the profile's setting.
	Enabled *bool
	// Saved says that the profile had it when it was saved, even if the profile's files
	// are too old to contain it.
	Saved bool
}

// These are values in Chrome's preferences of an extension, as found in Chromium 156
// (extensions/browser/extension_prefs.cc).
const (
	locationUnpacked = 4 // mojom::ManifestLocation::kUnpacked
	disabledByUser   = 1 // disable_reason::DISABLE_USER_ACTION
)

// placeExtensions updates the path in the profile's entries of its extensions. Chrome
// then loads them automatically, with the entries' enabled state and permissions.
// placeExtensions adds them to known. It deletes all other entries: nobody has checked
// those extensions, and a crafted profile could make one read the machine's files or
// start its programs. An entry needs no folder for that: an empty path means the
// profile's own Extensions folder. Chrome adds its built-in extensions again.
func (p Prepare) placeExtensions(prefs map[string]any, known map[string]bool) {
	extensions, ok := prefs["extensions"].(map[string]any)
	if !ok {
		return
	}
	settings, ok := extensions["settings"].(map[string]any)
	if !ok {
		return
	}
	ours := map[string]Extension{}
	for _, e := range p.Extensions {
		ours[e.ID] = e
	}
	for id, entry := range settings {
		e, _ := entry.(map[string]any)
		folder, _ := e["path"].(string)
		if extension, mine := ours[id]; mine && path.IsAbs(folder) && !known[id] {
			extension.place(e)
			known[id] = true
			continue
		}
		delete(settings, id)
	}
}

func (x Extension) place(entry map[string]any) {
	entry["location"] = locationUnpacked
	entry["path"] = x.Path
	entry["newAllowFileAccess"] = false
	// When Chrome starts, it drops an entry with the flags that Extensions.loadUnpacked
	// sets.
	delete(entry, "creation_flags")
	// Chrome completes a delayed installation from the folder that the entry names for
	// it, with the file access that it states (idle_install_info).
	for name, value := range entry {
		if other, ok := value.(map[string]any); ok && other["path"] != nil {
			delete(entry, name)
		}
	}
	dropControlled(entry)
	switch {
	case x.Enabled == nil:
	case *x.Enabled:
		entry["disable_reasons"] = []any{}
	default:
		entry["disable_reasons"] = []any{disabledByUser}
	}
}

// EnabledExtensions returns for each unpacked extension of the user data directory's
// profile whether it is enabled, as Chrome last wrote it to disk. It leaves out what
// cannot be read.
func EnabledExtensions(userDataDir string) map[string]bool {
	enabled := map[string]bool{}
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return enabled
	}
	defer func() { _ = root.Close() }() // only a handle
	for _, file := range []string{"Secure Preferences", "Preferences"} {
		raw, err := read(root, path.Join(Default, file))
		if err != nil {
			continue
		}
		var prefs struct {
			Extensions struct {
				Settings map[string]struct {
					Path    string            `json:"path"`
					Reasons []json.RawMessage `json:"disable_reasons"`
				} `json:"settings"`
			} `json:"extensions"`
		}
		if json.Unmarshal(raw, &prefs) != nil {
			continue
		}
		for id, e := range prefs.Extensions.Settings {
			if path.IsAbs(e.Path) {
				enabled[id] = len(e.Reasons) == 0
			}
		}
	}
	return enabled
}

// addUnknownExtensions adds entries for extensions that the profile does not know yet, and
// returns their IDs. Those are loaded over CDP once Chrome runs. Without an entry,
// loading over CDP would let them read the machine's files. Chrome runs unpacked
// extensions in developer mode only.
func (p Prepare) addUnknownExtensions(prefs map[string]any, known map[string]bool) (unknown []string) {
	if len(p.Extensions) == 0 {
		return nil
	}
	extensions := object(prefs, "extensions")
	object(extensions, "ui")["developer_mode"] = true
	settings := object(extensions, "settings")
	for _, e := range p.Extensions {
		if !known[e.ID] {
			entry := map[string]any{"newAllowFileAccess": false}
			if e.Saved {
				// The extension then sees an update, not an installation, which would
				// reset it.
				e.place(entry)
			}
			settings[e.ID] = entry
			unknown = append(unknown, e.ID)
		}
	}
	return unknown
}
