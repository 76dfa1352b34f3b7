// Package leveldb reads a LevelDB database at rest, without opening it, and writes new
// ones. Reading locks, writes and repairs nothing. It needs no comparator, so Chrome's
// own orders (IndexedDB's idb_cmp1) do not matter. The package is for counting what a
// profile holds and for finding damage: it checks every checksum, and returns what can
// still be read around a damaged block or record.
//
// The format is described in LevelDB's doc/table_format.md, doc/log_format.md and
// doc/impl.md. Snappy is the only compression.
package leveldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// MaxEntries bounds the picked entries of one database, deleted ones included. MaxBytes
// bounds their keys and requested values, in one record and in total. Reading keeps that
// much in memory, plus one block or value at a time. A larger database is ErrTooMuch.
const (
	MaxEntries = 200_000
	MaxBytes   = 32 << 20
)

// maxUnpacked bounds the total size of a database's blocks in bytes, packed or unpacked,
// whichever is larger: an index may name the same block any number of times.
const maxUnpacked = 1 << 30

// ErrTooMuch is the error for a database that is larger than the limits.
var ErrTooMuch = fmt.Errorf("it has more than %d entries or %d MiB", MaxEntries, MaxBytes>>20)

// errDamaged is the error for what LevelDB calls corruption.
var errDamaged = errors.New("damaged")

// Database is what was read of a database.
type Database struct {
	// Entries has the live entries that were picked: key to value. A value is nil unless
	// it was requested.
	Entries map[string][]byte
	// Damage says what could not be read; "" if everything was read. Entries then has the
	// rest; a deletion may be missing too.
	Damage string
	// Deleted has the picked keys that were deleted, as far as their deletions are still
	// in the files.
	Deleted []string
	// Truncated says that a log ends within a record. LevelDB treats such a record as never
	// written, and so does Entries.
	Truncated bool
}

// Read reads the database in a folder of a file system. pick selects keys; values
// requests their values too. Read fails only with ErrTooMuch or ctx's error: a database
// that cannot be read at all has Damage.
func Read(ctx context.Context, fsys fs.FS, dir string, pick func(key []byte) bool, values bool) (Database, error) {
	r := reader{ctx: ctx, fsys: fsys, dir: dir, pick: pick, values: values, newest: map[string]version{}}
	live, err := r.manifest()
	switch {
	case err != nil:
		r.recordDamage(err, "its list of files")
	default:
		for _, n := range live.tables {
			if r.err == nil {
				r.recordDamage(r.table(n), "a table")
			}
		}
		for _, n := range live.logs {
			if r.err == nil {
				r.recordDamage(r.log(n), "a log")
			}
		}
	}
	if r.err != nil {
		return Database{}, r.err
	}
	db := Database{Entries: map[string][]byte{}, Damage: r.damage, Truncated: r.truncated}
	for key, v := range r.newest {
		if v.live {
			db.Entries[key] = v.value
		} else {
			db.Deleted = append(db.Deleted, key)
		}
	}
	return db, nil
}

// reader is one reading of a database.
type reader struct {
	ctx    context.Context
	fsys   fs.FS
	dir    string
	pick   func(key []byte) bool
	values bool

	newest    map[string]version
	bytes     int    // bytes of newest
	unpacked  int    // bytes of all blocks so far
	damage    string // the first damage found
	truncated bool   // a log's end is cut off
	err       error  // ErrTooMuch, or ctx's
}

// version is an entry or a deletion, as of a sequence number.
type version struct {
	seq   uint64
	live  bool
	value []byte
}

// recordDamage records damage, in words without names of files or sites.
func (r *reader) recordDamage(err error, what string) {
	switch {
	case r.ctx.Err() != nil:
		r.err = r.ctx.Err()
	case errors.Is(err, ErrTooMuch):
		r.err = ErrTooMuch // stops the reading
	case err == nil || r.damage != "":
	case errors.Is(err, fs.ErrNotExist):
		r.damage = what + " is missing"
	default:
		r.damage = what + " is damaged"
	}
}

// add records one version of a key; the newest one counts. The caller may reuse key and
// value.
func (r *reader) add(key []byte, seq uint64, live bool, value []byte) error {
	if err := r.ctx.Err(); err != nil {
		return err // a block may have millions of entries with one long key
	}
	if !r.pick(key) {
		return nil
	}
	old, known := r.newest[string(key)]
	if known && old.seq >= seq {
		return nil
	}
	if !known {
		r.bytes += len(key)
	}
	v := version{seq: seq, live: live}
	if r.values && live {
		v.value = append([]byte{}, value...)
	}
	r.bytes += len(v.value) - len(old.value)
	if r.newest[string(key)] = v; len(r.newest) > MaxEntries || r.bytes > MaxBytes {
		return ErrTooMuch
	}
	return nil
}

// open opens a regular file. Anything else, such as a named pipe, could block the reader.
func (r *reader) open(name string) (fs.File, error) {
	name = path.Join(r.dir, name)
	info, err := fs.Stat(r.fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, err
	}
	return r.fsys.Open(name)
}
