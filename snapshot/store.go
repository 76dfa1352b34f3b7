package snapshot

import (
	"context"
	"crypto/sha256"
	"io"
	"math"
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
// An object store can keep it: Upload is a multipart upload to a temporary
// name (or a local spool), Commit a conditional copy, Create a conditional PUT.
type Store interface {
	// Upload begins an object whose name is known only at its end.
	Upload(ctx context.Context) (Upload, error)
	// Open returns an object's bytes; the caller closes the reader.
	Open(ctx context.Context, key Key) (io.ReadCloser, error)
	// Create writes an object that must not exist; created is false, and
	// nothing was changed, when it does.
	Create(ctx context.Context, key Key, body []byte) (created bool, err error)
	// Replace writes an object over whatever is there, in one step.
	Replace(ctx context.Context, key Key, body []byte) error
	// Delete removes an object; one that is missing is no error.
	Delete(ctx context.Context, key Key) error
	// List returns names directly in a folder, without the folder, ascending,
	// greater than after, at most limit (> 0). A missing folder is empty.
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
	// Abort drops what was not committed. It is idempotent, and does nothing
	// after a Commit that created.
	Abort() error
}

// Sum is the length and hash of an object's bytes.
type Sum struct {
	Size   int64 // bytes
	SHA256 [sha256.Size]byte
}
