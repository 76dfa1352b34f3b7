package profiles

import (
	"context"
	"time"
)

// Extension is the record of an uploaded extension. Its files are kept by their
// SHA256.
type Extension struct {
	ID        string // 32 letters, as Chrome computes it
	UserID    string // the user of the key that uploaded it
	SHA256    string // of its files, hex
	Name      string
	Version   string
	SizeBytes int64 // of its files
	CreatedAt time.Time
}

// PinnedExtension is an extension whose files a snapshot holds.
type PinnedExtension struct {
	ID     string
	SHA256 string
}

// ExtensionStore keeps the records of uploaded extensions.
type ExtensionStore interface {
	// PutExtension records an extension, in place of its user's other version of
	// that ID. One with the same files stays as it was recorded, and is given
	// back with fresh false. unused is the SHA256 of files that no record names
	// any more; "" if there are none.
	PutExtension(ctx context.Context, e Extension) (is Extension, fresh bool, unused string, err error)
	// Extension is a user's extension of that ID; none is extension_not_found.
	Extension(ctx context.Context, userID, id string) (Extension, error)
	// Extensions lists a user's, newest first; everybody's where userID is "".
	Extensions(ctx context.Context, userID string) ([]Extension, error)
	// DeleteExtension forgets one. While a snapshot of the user has an extension
	// of that ID it is extension_in_use, unless force. unused is as in
	// PutExtension.
	DeleteExtension(ctx context.Context, userID, id string, force bool) (unused string, err error)
}
