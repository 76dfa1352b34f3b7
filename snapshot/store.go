package snapshot

import (
	"context"
	"crypto/sha256"
	"io"
	"math"
	"time"
)

// Unlimited is what [Store.Room] answers where nothing is known of a limit.
const Unlimited int64 = math.MaxInt64

// Store keeps sealed bytes under keys. It understands none of them.
//
// The contract, which snapshot/storetest checks on every adapter:
//
//   - An object is there whole or not at all, also after a crash at any time;
//     what a method reported as written survives one.
//   - A method that failed left nothing behind, as far as it could tell: the
//     [Vault] still looks, because a lost answer is not a lost write.
//   - Objects are never changed in place. Who has one open reads what it was
//     when it was opened, though it be replaced or deleted meanwhile.
//   - Safe for concurrent use, also by other processes on the same bytes.
//   - Errors are fault.Errors: snapshot_not_found for a missing object,
//     store_full where there is no room or quota, store_failed for the rest,
//     which includes the zero [Key] and a cancelled ctx.
//
// An object store can keep it: Upload is a local spool, Commit and Create are
// conditional PUTs (If-None-Match), Swap is one with If-Match.
type Store interface {
	// Upload begins an object whose name is known only at its end.
	Upload(ctx context.Context) (Upload, error)
	// Open returns an object's bytes; the caller closes the reader.
	Open(ctx context.Context, key Key) (io.ReadCloser, error)
	// Stat tells an object's size and age without reading it.
	Stat(ctx context.Context, key Key) (Stat, error)
	// Create writes an object that must not exist; created is false, and
	// nothing was changed, when it does.
	Create(ctx context.Context, key Key, body []byte) (created bool, err error)
	// Swap writes an object over the one that is there, in one step, only while
	// that one holds exactly old; swapped is false, and nothing was changed,
	// when it holds something else or is missing. Of two writers who saw the
	// same object one wins.
	Swap(ctx context.Context, key Key, old, body []byte) (swapped bool, err error)
	// Delete removes an object; one that is missing is no error.
	Delete(ctx context.Context, key Key) error
	// List returns the names of the objects and folders directly in a folder,
	// without the folder and without slashes, ascending, greater than after, at
	// most limit (> 0). A missing folder is empty, and an empty one may be missing.
	List(ctx context.Context, folder Key, limit int, after string) ([]string, error)
	// Room is how many more bytes fit, or [Unlimited].
	Room(ctx context.Context) (int64, error)
	// Health reports whether the store can be read and written.
	Health(ctx context.Context) error
	// Close releases the store. It is idempotent.
	Close() error
}

// Upload is one object on its way into a [Store]. It is for one goroutine.
type Upload interface {
	io.Writer
	// Commit makes the object visible under key, once what was written is
	// durable and is exactly sum; otherwise it is store_failed. created is
	// false when the key is taken: then nothing changed, and Commit may be
	// tried again. After an error, only Abort is allowed.
	Commit(ctx context.Context, key Key, sum Sum) (created bool, err error)
	// Replace is Commit over whatever stands under the key, in one step.
	Replace(ctx context.Context, key Key, sum Sum) error
	// Abort drops what was not committed. It is idempotent, and does nothing
	// after a Commit that created or a Replace.
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
