package leveldb

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
)

// Log records: a header of checksum (4), length (2) and type (1), in blocks of
// 32 KB, padded where less than a header is left.
const (
	logBlock  = 32 << 10
	logHeader = 7

	recordFull   = 1
	recordFirst  = 2
	recordMiddle = 3
	recordLast   = 4
)

// maxRecord bounds a logical record, in bytes: one write of Chrome's, larger
// values being files of their own. A larger one is too much.
const maxRecord = MaxBytes

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// unmask undoes LevelDB's masking of stored checksums (util/crc32c.h).
func unmask(crc uint32) uint32 {
	rot := crc - 0xa282ead8
	return rot>>17 | rot<<15
}

// log reads the write-ahead log with a number. As in LevelDB, a record that
// the end of the file cuts off was never written, which is noted; anything else
// is damage.
func (r *reader) log(n uint64) error {
	f, err := r.open(fmt.Sprintf("%06d.log", n))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	cut, err := records(f, r.batch)
	r.cut = r.cut || cut
	return err
}

// records gives each whole record of a log. After a damaged one it goes on with
// the next block, and tells of the damage in the end. cut says that the log
// ends within a record, however long that was to be.
func records(f fs.File, do func([]byte) error) (cut bool, err error) {
	in := bufio.NewReaderSize(f, logBlock)
	block := make([]byte, logBlock)
	var damage error
	var record []byte
	open := false // a record is begun
	long := false // … and is longer than what is read
	for {
		n, err := io.ReadFull(in, block)
		last := errors.Is(err, io.ErrUnexpectedEOF)
		if errors.Is(err, io.EOF) {
			return open, damage
		}
		if err != nil && !last {
			return false, err
		}
		rest := block[:n]
		for len(rest) >= logHeader {
			size, kind := int(binary.LittleEndian.Uint16(rest[4:])), rest[6]
			if size == 0 && kind == 0 {
				rest = nil // the file was made longer than what was written
				break
			}
			if logHeader+size > len(rest) {
				if last {
					return true, damage // cut off while it was being written
				}
				damage, open = errDamaged, false
				break
			}
			data := rest[logHeader : logHeader+size]
			if crc32.Checksum(rest[6:logHeader+size], castagnoli) != unmask(binary.LittleEndian.Uint32(rest)) {
				damage, open = errDamaged, false // its length cannot be trusted either
				break
			}
			rest = rest[logHeader+size:]
			switch kind {
			case recordFull, recordFirst:
				record, open, long = append(record[:0], data...), true, false
			case recordMiddle, recordLast:
				if long = long || len(record)+len(data) > maxRecord; open && !long {
					record = append(record, data...)
				}
			default:
				damage, open = errDamaged, false
				continue
			}
			if open && long && kind == recordLast {
				return false, ErrTooMuch
			}
			if open && (kind == recordFull || kind == recordLast) {
				open = false
				if err := do(record); errors.Is(err, errDamaged) {
					damage = err
				} else if err != nil {
					return false, err
				}
			}
		}
		if last {
			return open || len(rest) > 0, damage
		}
	}
}

// batch reads a write batch: a sequence number, a count, and the operations.
func (r *reader) batch(b []byte) error {
	if len(b) < 12 {
		return errDamaged
	}
	seq := binary.LittleEndian.Uint64(b)
	for rest := b[12:]; len(rest) > 0; seq++ {
		kind := rest[0]
		var key, value []byte
		var ok bool
		if key, rest, ok = sized(rest[1:]); !ok || kind > 1 {
			return errDamaged
		}
		if kind == 1 {
			if value, rest, ok = sized(rest); !ok {
				return errDamaged
			}
		}
		if err := r.add(key, seq, kind == 1, value); err != nil {
			return err
		}
	}
	return nil
}

// sized splits off bytes that their length stands before, as a varint.
func sized(b []byte) (data, rest []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, false
	}
	return b[w : w+int(n)], b[w+int(n):], true
}

// readAll reads a small file whole.
func (r *reader) readAll(name string, most int64) ([]byte, error) {
	f, err := r.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = errDamaged
	}
	return bytes.TrimSpace(b), err
}
