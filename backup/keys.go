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

// KeyFiles returns the names of the keys in the backup.
func (m Manifest) KeyFiles() (names []string) {
	for _, f := range m.Files {
		if name, is := strings.CutPrefix(f.Path, Keys+"/"); is {
			names = append(names, name)
		}
	}
	return names
}
