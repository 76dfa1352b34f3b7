package leveldb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
)

// batchSize is the size in bytes at which a write batch is complete; it may be exceeded
// by one entry.
const batchSize = 1 << 20

// Write creates a database with the given entries in a folder that is missing or empty.
// It is one log in key order, which LevelDB replays when it opens the database. The key
// order is LevelDB's default.
func Write(root *os.Root, dir string, entries map[string][]byte) error {
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
	keys := slices.Sorted(maps.Keys(entries))
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

// add appends a record, in pieces if it does not fit into the current block.
func (l *logFile) add(record []byte) {
	for first := true; first || len(record) > 0; first = false {
		room := logBlock - len(*l)%logBlock
		if room < logHeader {
			*l = append(*l, make([]byte, room)...)
			room = logBlock
		}
		n := min(len(record), room-logHeader)
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
