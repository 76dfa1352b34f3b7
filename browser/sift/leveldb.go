package sift

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/stasisd/stasis/browser/inventory/leveldb"
)

// levelDB makes a LevelDB hold only the entries that are wanted. It is written
// anew: a deletion alone would leave the bytes in its files until Chrome
// compacts them. One that cannot be read whole goes whole.
func (s *sieve) levelDB(dir string, wanted func(key, value []byte) bool) error {
	if !s.exists(dir) {
		return nil
	}
	db, err := leveldb.Read(s.root.FS(), dir, func([]byte) bool { return true }, true)
	if rerr := s.root.RemoveAll(dir); rerr != nil {
		return rerr
	}
	if err != nil || db.Damage != "" {
		s.lose(dir)
		return nil
	}
	for key, value := range db.Entries {
		if !wanted([]byte(key), value) {
			delete(db.Entries, key)
		}
	}
	return writeLevelDB(s.root, dir, db.Entries)
}

// Parts of LevelDB's format: doc/log_format.md, and VersionEdit of
// db/version_edit.cc.
const (
	blockSize  = 32 << 10
	headerSize = 7

	recordFull, recordFirst, recordMiddle, recordLast = 1, 2, 3, 4

	editComparator, editLogNumber, editNextFile, editLastSequence = 1, 2, 3, 4

	batchSize = 1 << 20 // bytes of entries in one write batch
)

// writeLevelDB makes a database of the entries, in key order, as one log that
// Chrome replays when it opens it. The order of its keys is LevelDB's own.
func writeLevelDB(root *os.Root, dir string, entries map[string][]byte) error {
	if err := root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var edit []byte
	edit = binary.AppendUvarint(edit, editComparator)
	edit = appendBytes(edit, []byte("leveldb.BytewiseComparator"))
	for _, field := range [][2]uint64{{editLogNumber, 2}, {editNextFile, 3}, {editLastSequence, 0}} {
		edit = binary.AppendUvarint(binary.AppendUvarint(edit, field[0]), field[1])
	}
	var log logFile
	keys := make([]string, 0, len(entries))
	for key := range entries {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	sequence := uint64(1)
	for len(keys) > 0 {
		batch := make([]byte, 12)
		n := 0
		for n < len(keys) && len(batch) < batchSize {
			batch = append(batch, 1) // a value
			batch = appendBytes(appendBytes(batch, []byte(keys[n])), entries[keys[n]])
			n++
		}
		binary.LittleEndian.PutUint64(batch, sequence)
		binary.LittleEndian.PutUint32(batch[8:], uint32(n))
		log.add(batch)
		sequence, keys = sequence+uint64(n), keys[n:]
	}
	var manifest logFile
	manifest.add(edit)
	for name, body := range map[string][]byte{"CURRENT": []byte("MANIFEST-000001\n"), "MANIFEST-000001": manifest, "000002.log": log} {
		if err := root.WriteFile(path.Join(dir, name), body, 0o600); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func appendBytes(to, b []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(b))), b...)
}

// logFile is a file of records in blocks.
type logFile []byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add appends a record, in pieces where it does not fit its block.
func (l *logFile) add(record []byte) {
	for first := true; first || len(record) > 0; first = false {
		room := blockSize - len(*l)%blockSize
		if room < headerSize {
			*l = append(*l, make([]byte, room)...)
			room = blockSize
		}
		n := min(len(record), room-headerSize)
		kind := byte(recordMiddle)
		switch last := n == len(record); {
		case first && last:
			kind = recordFull
		case first:
			kind = recordFirst
		case last:
			kind = recordLast
		}
		sum := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, record[:n])
		masked := sum>>15 | sum<<17
		*l = binary.LittleEndian.AppendUint32(*l, masked+0xa282ead8)
		*l = binary.LittleEndian.AppendUint16(*l, uint16(n))
		*l = append(append(*l, kind), record[:n]...)
		record = record[n:]
	}
}
