package profile

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// LastVersion is the file beside the profiles that names the Chrome that ran
// there last.
const LastVersion = "Last Version"

// Desktop is a profile in an archive of an ordinary Chrome's user data
// directory, packed with or without the folders above it.
type Desktop struct {
	profile string // the profile's folder in the archive; "." for the whole
	beside  string // the folder that it lies in; "" where the archive has none
}

// FindDesktop finds a profile by its folder's name ("" for [Default]) among
// the names of an archive. An archive of nothing but one profile's own files
// is that profile, whatever its folder is called.
func FindDesktop(names []string, profile string) (Desktop, error) {
	named := profile != ""
	if !named {
		profile = Default
	}
	var found []string
	for _, name := range names {
		if path.Base(name) == "Preferences" {
			found = append(found, path.Dir(name))
		}
	}
	// What lies higher up is the profile; what lies below it are its parts.
	slices.SortStableFunc(found, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	for _, at := range found {
		if path.Base(at) == profile {
			return Desktop{profile: at, beside: path.Dir(at)}, nil
		}
	}
	if !named && len(found) == 1 && !strings.Contains(found[0], "/") {
		return Desktop{profile: found[0]}, nil
	}
	has := "no folder in it has Preferences"
	if len(found) > 0 {
		var bases []string
		for _, at := range found[:min(len(found), 10)] {
			bases = append(bases, path.Base(at))
		}
		has = "it has " + strings.Join(bases, ", ")
	}
	return Desktop{}, fault.New(fault.InvalidImport, "profile.desktop", "there is no profile %q in the archive: %s", profile, has)
}

// Place tells what an archive's file is called in a user data directory of
// ours, or why it is left out.
func (d Desktop) Place(name string) (to, why string) {
	if d.beside != "" && name == path.Join(d.beside, LastVersion) {
		return LastVersion, ""
	}
	rel, below := name, true
	if d.profile != "." {
		rel, below = strings.CutPrefix(name, d.profile+"/")
	}
	switch {
	case name == d.profile:
		return Default, ""
	case !below:
		return "", LeftOut(name)
	}
	to = path.Join(Default, rel)
	if strings.HasPrefix(rel, "Extensions/") {
		return "", "extensions: upload them, and name them in a create"
	}
	if !Accept(to) {
		return "", LeftOut(to)
	}
	return to, ""
}

// LeftOut is why a file of an archive is none that [Accept] takes.
func LeftOut(name string) string {
	elements := strings.Split(name, "/")
	switch {
	case slices.Contains(elements, "NativeMessagingHosts"):
		return "NativeMessagingHosts: it would name programs of the machine for Chrome to run"
	case slices.ContainsFunc(elements, func(e string) bool { return strings.HasPrefix(e, "Singleton") }):
		return "Singleton*: locks of the Chrome that ran there"
	case elements[0] == Default:
		return "caches, logs and locks, which Chrome makes again"
	default:
		return "beside the profile: of the Chrome that ran there, or of other profiles"
	}
}

// Left tells of a profile whether its Chrome had closed it, and which version
// that Chrome had ("" where it does not say). Preferences that are no JSON are
// archive_damaged.
func Left(userDataDir string) (clean bool, version string, err error) {
	const op = "profile.left"
	if err := checkReal(userDataDir); err != nil {
		return false, "", err
	}
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return false, "", fault.Wrap(err, fault.StoreFailed, op, "the profile's folder cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	raw, err := read(root, path.Join(Default, "Preferences"))
	if errors.Is(err, errNoPreferences) {
		return false, "", fault.New(fault.ArchiveDamaged, op, "the profile's preferences: %v", err)
	}
	if err != nil {
		return false, "", fault.Wrap(err, fault.StoreFailed, op, "the profile's preferences could not be read")
	}
	var prefs struct {
		Profile struct {
			ExitType string `json:"exit_type"`
		} `json:"profile"`
		Extensions struct {
			LastVersion string `json:"last_chrome_version"`
		} `json:"extensions"`
	}
	if err := json.Unmarshal(raw, &prefs); err != nil {
		return false, "", fault.Wrap(err, fault.ArchiveDamaged, op, "the profile's preferences are not JSON")
	}
	return prefs.Profile.ExitType == "Normal", prefs.Extensions.LastVersion, nil
}

// maxVersion bounds a version of Chrome, in bytes.
const maxVersion = 32

// DesktopOrigin is what an unpacked desktop profile tells of the Chrome that had it.
type DesktopOrigin struct {
	Clean   bool   // that Chrome had closed it
	Version string // of that Chrome; "" where nothing says it
	// Sealed are report lines of what only the keyring of that machine opens.
	Sealed []state.Component
}

// Keep names the files of an archive that [OriginOf] wants beside the profile.
func (d Desktop) Keep() []string { return []string{LastVersion} }

// OriginOf looks at a desktop profile that was unpacked into a user data directory; kept
// has the files that [Desktop.Keep] names, as far as they were there. Preferences that
// are no JSON are archive_damaged.
func OriginOf(ctx context.Context, userDataDir string, kept map[string][]byte) (o DesktopOrigin, err error) {
	var version string
	if o.Clean, version, err = Left(userDataDir); err != nil {
		return o, err
	}
	if o.Version = strings.TrimSpace(string(kept[LastVersion])); o.Version == "" || len(o.Version) > maxVersion {
		o.Version = version
	}
	for _, x := range SealedByKeyring(ctx, userDataDir) {
		name := state.ComponentCookies
		if x.File != "Cookies" {
			name = state.ComponentPasswords
		}
		o.Sealed = append(o.Sealed, state.Component{Name: name, Origin: x.Origin, Saved: x.Count, Dropped: x.Count,
			Reason: report.OtherKey.With("encrypted with the system keyring of that machine (v11): it cannot be read here")})
	}
	return o, nil
}
