package backup

import (
	"slices"
	"strings"
)

// KeyFiles returns the names of the keys in a data directory and below [Keys].
func KeyFiles() []string {
	return []string{"identity", "identity.old", "archive-key", "api-key", "webhook-secret"}
}

func isKey(name string) bool { return slices.Contains(KeyFiles(), name) }

// inKeys reports whether a path in a backup is that of a key.
func inKeys(name string) bool { return strings.HasPrefix(name, Keys+"/") }

// KeyFiles returns the names of the keys in the backup.
func (m Manifest) KeyFiles() (names []string) {
	for _, f := range m.Files {
		if inKeys(f.Path) {
			names = append(names, strings.TrimPrefix(f.Path, Keys+"/"))
		}
	}
	return names
}
