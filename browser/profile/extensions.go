package profile

import (
	"encoding/json"
	"os"
	"path"
)

// Extension is an unpacked extension of a profile.
type Extension struct {
	ID   string // as Chrome computes it from the manifest's key
	Path string // absolute: where its files are now
	// Enabled sets whether it runs, for a profile that may not have it as it
	// was last; nil leaves it as the profile has it.
	Enabled *bool
	// Saved: the profile had it when it was saved, even where its files are too
	// old to know it.
	Saved bool
}

// What Chrome writes of an extension in its preferences, as found in Chromium
// 156 (extensions/browser/extension_prefs.cc).
const (
	locationUnpacked = 4 // mojom::ManifestLocation::kUnpacked
	disabledByUser   = 1 // disable_reason::DISABLE_USER_ACTION
)

// placeExtensions points the profile's entries of its extensions at where the
// files are now, so that Chrome loads them by itself, with the enabled state
// and the permissions that the entries hold; it notes them in known. All other
// entries are forgotten: nobody has checked those extensions, and a profile
// made for it could have one read the machine's files or start its programs.
// An entry needs no folder for that: an empty path means the profile's own
// Extensions. Chrome enters its own again.
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
	// Chrome forgets an entry with the flags that Extensions.loadUnpacked gives
	// it when it starts.
	delete(entry, "creation_flags")
	// Chrome finishes an installation that it has put off, from the folder that the
	// entry names for it, with the access that it names (idle_install_info).
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

// EnabledExtensions tells of each extension that a profile of the user data
// directory has in a folder whether it runs, as Chrome last wrote that down.
// What cannot be read is left out.
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

// announceExtensions readies the profile for extensions that it does not know
// yet and that are loaded over CDP once Chrome runs: that alone would let them
// read the machine's files. It returns their IDs. Chrome runs unpacked
// extensions in developer mode only.
func (p Prepare) announceExtensions(prefs map[string]any, known map[string]bool) (unknown []string) {
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
				// To the extension it is then an update, and not an installation
				// that makes it begin anew.
				e.place(entry)
			}
			settings[e.ID] = entry
			unknown = append(unknown, e.ID)
		}
	}
	return unknown
}
