package browser

import (
	"os"
	"path/filepath"

	"github.com/stasisd/stasis/browser/profile"
)

// What callers handle of an environment's files. Chrome's own names for them are
// known to package profile alone.
type (
	// File is one file or folder of an environment.
	File = profile.File
	// Copy is a copy of an environment's files that is brought up to date.
	Copy = profile.Copy
	// Survey is what a save learns of the profile that it archives.
	Survey = profile.Survey
	// Reading is the last reading of a Chrome over CDP before it died.
	Reading = profile.Reading
	// Desktop is a profile in an archive of an ordinary Chrome.
	Desktop = profile.Desktop
	// DesktopOrigin is what a desktop profile tells of the Chrome that had it.
	DesktopOrigin = profile.DesktopOrigin
)

// NewCopy makes an empty copy in a run directory that no Chrome uses.
func NewCopy(dir *Dir) *Copy { return profile.NewCopy(dir.Profile()) }

// Size is the sum of the files' sizes in bytes.
func Size(files []File) int64 { return profile.Size(files) }

// HasProfile reports whether a run directory holds a profile.
func HasProfile(dir *Dir) bool { return profile.Exists(dir.Profile()) }

// ExtensionOf is the ID of the extension to which a file of an archive belongs; ""
// where it belongs to none.
func ExtensionOf(name string) string {
	if id, _, ok := profile.InExtension(name); ok {
		return id
	}
	return ""
}

// EnabledExtensions tells of each extension in a run directory's profile whether it
// runs, as Chrome last wrote that down.
func EnabledExtensions(dir *Dir) map[string]bool { return profile.EnabledExtensions(dir.Profile()) }

// ExtensionIDs names the folders of extensions in a run directory.
func ExtensionIDs(dir *Dir) []string {
	entries, err := os.ReadDir(filepath.Join(dir.Profile(), profile.Extensions))
	if err != nil {
		return nil // there are none
	}
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}
