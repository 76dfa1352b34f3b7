package backup

import "slices"

// KeyFiles are the names that keys have in a data directory, and below [Keys].
func KeyFiles() []string {
	return []string{"identity", "identity.old", "archive-key", "api-key", "webhook-secret"}
}

func isKey(name string) bool { return slices.Contains(KeyFiles(), name) }
