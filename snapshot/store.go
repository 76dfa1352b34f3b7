package snapshot

import (
	"context"
	"crypto/sha256"
	"io"
	"math"
	"time"
)

// Unlimited is the result of [Store.FreeSpace] if no limit is known.
const Unlimited int64 = math.MaxInt64

// Store keeps sealed bytes under keys. It does not interpret them.
//
// The contract, which snapshot/storetest checks on every adapter:
//
//   - An object exists completely or not at all, also after a crash at any time. What a
//     method reported as written survives a crash.
//   - A method that failed left nothing behind, as far as it knows. The [Vault]
//     still checks, because a lost response is not a lost write.
//   - Objects are never changed in place. A reader of an open object sees its old bytes,
//     even if the object is replaced or deleted meanwhile.
//   - A store is safe for concurrent use, also by other processes on the same bytes.
//   - Errors are fault.Errors: snapshot_not_found for a missing object, store_full if
//     space or quota is used up, store_failed for all others. These include the zero [Key]
//     and a cancelled ctx.
//
// An object store can implement it: Upload is a local spool, Commit and Create are
// conditional PUTs (If-None-Match), Swap is a PUT with If-Match.
type Store interface {
	// Upload begins an object whose name is known only at its end.
	Upload(ctx context.Context) (Upload, error)
	// Open returns an object's bytes; the caller closes the reader.
	Open(ctx context.Context, key Key) (io.ReadCloser, error)
	// Stat returns an object's size and age without reading the object.
	Stat(ctx context.Context, key Key) (Stat, error)
	// Create writes an object that must not exist. If it exists, created is false and
	// nothing changes.
	Create(ctx context.Context, key Key, body []byte) (created bool, err error)
	// Swap overwrites an object in one step, only while the object holds exactly old. If it
	// holds something else or is missing, swapped is false and nothing changes. Of two
	// writers that read the same object, one wins.
	Swap(ctx context.Context, key Key, old, body []byte) (swapped bool, err error)
	// Delete removes an object; a missing object is no error.
	Delete(ctx context.Context, key Key) error
	// List returns the names of the objects and folders directly in a folder, in ascending
	// order. It returns those greater than after, at most limit (> 0). Names have no folder
	// and no slash. A missing folder is empty, and an empty folder may be missing.
	List(ctx context.Context, folder Key, limit int, after string) ([]string, error)
	// FreeSpace returns how many more bytes fit, or [Unlimited].
	FreeSpace(ctx context.Context) (int64, error)
	// Health reports whether the store can be read and written.
	Health(ctx context.Context) error
	// Close releases the store. It is idempotent.
	Close() error
}

// Upload is an object that is being written to a [Store]. It is for one goroutine.
type Upload interface {
	io.Writer
	// Commit makes the object visible under key, once the written bytes are durable and
	// match sum; a mismatch is store_failed. If the key is taken, created is false, nothing
	// changes, and Commit may be called again. After an error, only Abort is allowed.
	Commit(ctx context.Context, key Key, sum Sum) (created bool, err error)
	// Replace is Commit over any object under the key, in one step.
	Replace(ctx context.Context, key Key, sum Sum) error
	// Abort drops an uncommitted object. It is idempotent, and does nothing after a Commit
	// that created or a Replace.
	Abort() error
}

// Sum is the length and hash of an object's bytes.
type Sum struct {
	Size   int64 // bytes
	SHA256 [sha256.Size]byte
}

// Stat is what a store knows of an object without reading it.
type Stat struct {
	Size     int64     // bytes
	Modified time.Time // when it was last written, by the store's clock
}
