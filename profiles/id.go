package profiles

import "github.com/google/uuid"

// NewID makes the ID of a record: a UUIDv7, unique and in the order of time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
