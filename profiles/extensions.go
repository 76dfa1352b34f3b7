package profiles

import (
	"context"
	"io"
	"time"
)

// Extension is the record of an uploaded extension. Its files are stored under their
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
	// PutExtension records an extension and replaces another version with that ID of the
	// same user. If the same files are already recorded, it returns that record unchanged,
	// with fresh false. unused is the SHA256 of files that no record names any more, or "".
	// packed has the files, which are stored first; nil: they are kept elsewhere.
	PutExtension(ctx context.Context, e Extension, packed *io.SectionReader) (is Extension, fresh bool, unused string, err error)
	// Extension returns a user's extension with that ID, or extension_not_found.
	Extension(ctx context.Context, userID, id string) (Extension, error)
	// Extensions lists a user's extensions, newest first. If userID is "", it lists those
	// of all users.
	Extensions(ctx context.Context, userID string) ([]Extension, error)
	// DeleteExtension deletes an extension's record. If a snapshot of the user has an
	// extension with that ID, it returns extension_in_use, unless force is set. unused is
	// as in PutExtension.
	DeleteExtension(ctx context.Context, userID, id string, force bool) (unused string, err error)
}

// PackedExtensionStore keeps the files of uploaded extensions as one string of bytes, by
// their SHA256, for nodes. They are deleted with the last record that names them. Files that no
// record names count as not stored.
type PackedExtensionStore interface {
	// ExtensionFiles lists the SHA256 of the files that records name, and whether they are
	// stored here.
	ExtensionFiles(ctx context.Context) (stored map[string]bool, err error)
	// AddPackedExtension stores files, unless they are stored.
	AddPackedExtension(ctx context.Context, sha256 string, packed *io.SectionReader) error
	// PackedExtension writes files to w. It returns extension_not_found if no record names
	// them, store_failed if they are not stored, and an error of w with a code unchanged.
	// After an error, w may have a part of them.
	PackedExtension(ctx context.Context, sha256 string, w io.Writer) error
	// RemoveUnusedExtensions removes files that no record names: uploads that were stored
	// and not recorded.
	RemoveUnusedExtensions(ctx context.Context) error
}
