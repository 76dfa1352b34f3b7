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

// LastVersion is the file beside the profiles with the version of the Chrome that ran
// there last.
const LastVersion = "Last Version"

// Desktop is a profile in an archive of an ordinary Chrome's user data directory. The
// archive may contain the folders above it.
type Desktop struct {
	profile string // the profile's folder in the archive; "." for the whole archive
	beside  string // the folder that contains it; "" if the archive has none
}

// FindDesktop finds a profile among the names of an archive. profile is its folder's
// name, "" for [Default]. If an archive contains only the files of one profile, that is
// the profile, whatever its folder is called.
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
	// The topmost match is the profile; deeper ones are parts of it.
	slices.SortStableFunc(found, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	for _, at := range found {
		if path.Base(at) == profile {
			return Desktop{profile: at, beside: path.Dir(at)}, nil
		}
	}
	if !named && len(found) == 1 && !strings.Contains(found[0], "/") {
		return Desktop{profile: found[0]}, nil
	}
	has := "no folder in it has a file named Preferences"
	if len(found) > 0 {
		var bases []string
		for _, at := range found[:min(len(found), 10)] {
			bases = append(bases, path.Base(at))
		}
		has = "it has " + strings.Join(bases, ", ")
	}
	return Desktop{}, fault.New(fault.InvalidImport, "profile.desktop", "there is no profile %q in the archive: %s", profile, has)
}

// TargetName returns the name in a user data directory of Stasis for an archive's file,
// or why the file is left out.
func (d Desktop) TargetName(name string) (to, why string) {
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
		return "", ExclusionReason(name)
	}
	to = path.Join(Default, rel)
	if strings.HasPrefix(rel, "Extensions/") {
		return "", "extensions: upload them separately and list them when creating a session"
	}
	if !Accept(to) {
		return "", ExclusionReason(to)
	}
	return to, ""
}

// ExclusionReason returns why [Accept] rejects a file of an archive.
func ExclusionReason(name string) string {
	elements := strings.Split(name, "/")
	switch {
	case slices.Contains(elements, "NativeMessagingHosts"):
		return "NativeMessagingHosts: it could make Chrome run programs of this machine"
	case slices.ContainsFunc(elements, func(e string) bool { return strings.HasPrefix(e, "Singleton") }):
		return "Singleton*: locks of the Chrome that used the profile"
	case elements[0] == Default:
		return "caches, logs and locks, which Chrome creates again"
	default:
		return "outside the profile: it belongs to that Chrome or to other profiles"
	}
}

// ExitState reports whether a profile's Chrome had closed it, and that Chrome's version
// ("" if the profile does not record it). Preferences that are not JSON are
// archive_damaged.
func ExitState(userDataDir string) (clean bool, version string, err error) {
	const op = "profile.left"
	if err := checkNoLink(userDataDir); err != nil {
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

// DesktopOrigin describes the Chrome from which an unpacked desktop profile came.
type DesktopOrigin struct {
	Clean   bool   // that Chrome had closed it
	Version string // of that Chrome; "" if it is not recorded
	// Sealed has report lines of the secrets that only that machine's keyring can
	// decrypt.
	Sealed []state.Component
}

// KeptFiles lists the files of an archive beside the profile that [OriginOf] needs.
func (d Desktop) KeptFiles() []string { return []string{LastVersion} }

// OriginOf examines a desktop profile that was unpacked into a user data directory. kept
// has the contents of the files listed by [Desktop.KeptFiles] that the archive had.
// Preferences that are not JSON are archive_damaged.
func OriginOf(ctx context.Context, userDataDir string, kept map[string][]byte) (o DesktopOrigin, err error) {
	var version string
	if o.Clean, version, err = ExitState(userDataDir); err != nil {
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
