package backup

import "slices"

// KeyFiles returns the names of the keys in a data directory and below [Keys].
func KeyFiles() []string {
	return []string{"identity", "identity.old", "archive-key", "api-key", "webhook-secret"}
}

func isKey(name string) bool { return slices.Contains(KeyFiles(), name) }
