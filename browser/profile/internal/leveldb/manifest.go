package leveldb

import (
	"encoding/binary"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// These are the fields of a version edit (db/version_edit.cc).
const (
	editComparator     = 1
	editLogNumber      = 2
	editNextFile       = 3
	editLastSequence   = 4
	editCompactPointer = 5
	editDeletedFile    = 6
	editNewFile        = 7
	editPrevLogNumber  = 9
)

// maxTables bounds a database's tables; Chrome's have 2 MB each.
const maxTables = 10_000

// files has the numbers of a database's files, oldest first.
type files struct{ tables, logs []uint64 }

// manifest returns the live files: the tables of the manifest that CURRENT names, and
// every log that is not older than the one that the manifest names.
func (r *reader) manifest() (files, error) {
	var live files
	name, err := r.readAll("CURRENT", 256)
	if err != nil {
		return live, err
	}
	if !strings.HasPrefix(string(name), "MANIFEST-") || strings.ContainsAny(string(name), "/\\") {
		return live, errDamaged
	}
	f, err := r.open(string(name))
	if err != nil {
		return live, err
	}
	defer func() { _ = f.Close() }() // only read from
	e := edits{tables: map[uint64]bool{}}
	if _, err := records(r.ctx, f, &wholeRecord{do: e.apply}); err != nil {
		return live, err
	}
	if !e.some {
		return live, errDamaged
	}
	for n := range e.tables {
		live.tables = append(live.tables, n)
	}
	slices.Sort(live.tables)
	entries, err := fs.ReadDir(r.fsys, r.dir)
	if err != nil {
		return live, err
	}
	for _, entry := range entries {
		number, isLog := strings.CutSuffix(entry.Name(), ".log")
		n, err := strconv.ParseUint(number, 10, 64)
		if isLog && err == nil && (n >= e.log || n == e.previous && n != 0) {
			live.logs = append(live.logs, n)
		}
	}
	slices.Sort(live.logs)
	return live, nil
}

// edits accumulates the records of a manifest.
type edits struct {
	tables        map[uint64]bool
	log, previous uint64
	some          bool
}

func (e *edits) apply(b []byte) error {
	number := func() uint64 {
		n, w := binary.Uvarint(b)
		if w <= 0 {
			b = nil
			return 0
		}
		b = b[w:]
		return n
	}
	text := func() {
		_, rest, ok := sized(b)
		if !ok {
			rest = nil
		}
		b = rest
	}
	for len(b) > 0 {
		switch number() {
		case editComparator:
			text()
		case editLogNumber:
			e.log = number()
		case editPrevLogNumber:
			e.previous = number()
		case editNextFile, editLastSequence:
			number()
		case editCompactPointer:
			number()
			text()
		case editDeletedFile:
			number()
			delete(e.tables, number())
		case editNewFile:
			number()
			n := number()
			number()
			text()
			text()
			if e.tables[n] = true; len(e.tables) > maxTables {
				return ErrTooMuch
			}
		default:
			return errDamaged
		}
	}
	e.some = true
	return nil
}
