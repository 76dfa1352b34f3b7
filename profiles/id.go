package profiles

import "github.com/google/uuid"

// NewID returns the ID of a new record: a UUIDv7, unique and sorted by time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
