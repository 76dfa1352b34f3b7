// Package leveldb reads a LevelDB database at rest, without opening it, and
// makes new ones. Reading, nothing is locked, written or repaired, and no comparator is needed, so Chrome's own
// orders (IndexedDB's idb_cmp1) are no obstacle. It is for counting what a
// profile holds and for finding damage: every checksum is checked, and what can
// still be read around a damaged block or record is given.
//
// The format is that of LevelDB's doc/table_format.md, doc/log_format.md and
// doc/impl.md, with Snappy as the only compression.
package leveldb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// MaxEntries and MaxBytes bound how many picked entries one database may have,
// deleted ones included, and the bytes of their keys and of the values asked
// for, in one record and in all. They are what its reading keeps in memory, beside one block or value at
// a time. A database with more is ErrTooMuch.
const (
	MaxEntries = 200_000
	MaxBytes   = 32 << 20
)

// maxUnpacked bounds the blocks of a database taken together, in bytes, packed
// or unpacked, whichever is more: an index may name one block any number of times.
const maxUnpacked = 1 << 30

// ErrTooMuch says that a database has more than is read.
var ErrTooMuch = fmt.Errorf("it has more than %d entries or %d MiB", MaxEntries, MaxBytes>>20)

// errDamaged is the kind of error that LevelDB calls corruption.
var errDamaged = errors.New("damaged")

// Database is what was read of a database.
type Database struct {
	// Entries has the live entries that were picked: key to value. A value is
	// nil unless it was asked for.
	Entries map[string][]byte
	// Damage says what could not be read, "" where all could. Entries then has
	// what is left; a deletion may have been lost too.
	Damage string
	// Deleted are the picked keys that were there and are not any more, as far
	// as their deletions are still in the files.
	Deleted []string
	// Cut: the end of a log is cut off in the middle of a record. LevelDB takes
	// that for a write that never was, and so does Entries.
	Cut bool
}

// Read reads the database in a folder of a file system. pick says which keys
// count; values asks for the values too. It fails only with ErrTooMuch, or with
// ctx: a database that cannot be read at all is one with damage.
func Read(ctx context.Context, fsys fs.FS, dir string, pick func(key []byte) bool, values bool) (Database, error) {
	r := reader{ctx: ctx, fsys: fsys, dir: dir, pick: pick, values: values, newest: map[string]version{}}
	live, err := r.manifest()
	switch {
	case err != nil:
		r.harm(err, "its list of files")
	default:
		for _, n := range live.tables {
			if r.err == nil {
				r.harm(r.table(n), "a table")
			}
		}
		for _, n := range live.logs {
			if r.err == nil {
				r.harm(r.log(n), "a log")
			}
		}
	}
	if r.err != nil {
		return Database{}, r.err
	}
	db := Database{Entries: map[string][]byte{}, Damage: r.damage, Cut: r.cut}
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

	newest   map[string]version
	bytes    int    // of newest
	unpacked int    // bytes of all blocks so far
	damage   string // the first one
	cut      bool   // a log's end is cut off
	err      error  // ErrTooMuch, or ctx's
}

// version is an entry or a deletion, as of a sequence number.
type version struct {
	seq   uint64
	live  bool
	value []byte
}

// harm notes damage, in words without names of files or of sites.
func (r *reader) harm(err error, what string) {
	switch {
	case r.ctx.Err() != nil:
		r.err = r.ctx.Err()
	case errors.Is(err, ErrTooMuch):
		r.err = ErrTooMuch // ends the reading
	case err == nil || r.damage != "":
	case errors.Is(err, fs.ErrNotExist):
		r.damage = what + " is not there"
	default:
		r.damage = what + " is damaged"
	}
}

// add takes one version of a key; the newest one counts. key and value are the
// caller's to reuse.
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

// open opens a plain file. Another, such as a pipe, would hold its reader up.
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
