package browser

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/stasisd/stasis/browser/profile"
)

// The types that callers need for an environment's files. Only package profile knows
// Chrome's own file names.
type (
	// File is one file or folder of an environment.
	File = profile.File
	// Copy is a copy of an environment's files that can be updated.
	Copy = profile.Copy
	// Survey is what a save finds out about the profile that it archives.
	Survey = profile.Survey
	// Reading is the last state that was read from a Chrome over CDP before it died.
	Reading = profile.Reading
	// Desktop is an archived profile of an ordinary Chrome.
	Desktop = profile.Desktop
	// DesktopOrigin describes the Chrome that a desktop profile comes from.
	DesktopOrigin = profile.DesktopOrigin
)

// ErrIncomplete is the cause of the errors about an environment that is not complete, and so
// can be neither saved nor used again.
var ErrIncomplete = profile.ErrIncomplete

// NewCopy creates an empty copy in a run directory that no Chrome uses.
func NewCopy(dir *Dir) *Copy { return profile.NewCopy(dir.Profile()) }

// Size returns the sum of the files' sizes in bytes.
func Size(files []File) int64 { return profile.Size(files) }

// HasProfile reports whether a run directory holds a profile.
func HasProfile(dir *Dir) bool { return profile.Exists(dir.Profile()) }

// OnlyProfile reports whether a user data directory has nothing but the folders that an
// archive has: those of the profile and of extensions. Chrome and Stasis put others there.
func OnlyProfile(dir *Dir) (bool, error) {
	entries, err := os.ReadDir(dir.Profile())
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.Name() != profile.Default && e.Name() != profile.Extensions
	}), err
}

// ExtensionOf returns the ID of the extension that a file of an archive belongs to, or
// "".
func ExtensionOf(name string) string {
	if id, _, ok := profile.InExtension(name); ok {
		return id
	}
	return ""
}

// EnabledExtensions returns for each extension in a run directory's profile whether it is
// enabled, as Chrome last saved it.
func EnabledExtensions(dir *Dir) map[string]bool { return profile.EnabledExtensions(dir.Profile()) }

// ExtensionIDs returns the names of the extension folders in a run directory.
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
