package leveldb

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
)

// A log record has a header of checksum (4 bytes), length (2) and type (1). Records are
// in blocks of 32 KB, padded if less than a header is left.
const (
	logBlock  = 32 << 10
	logHeader = 7

	recordFull   = 1
	recordFirst  = 2
	recordMiddle = 3
	recordLast   = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// unmask is the inverse of LevelDB's masking of stored checksums (util/crc32c.h).
func unmask(crc uint32) uint32 {
	rot := crc - 0xa282ead8
	return rot>>17 | rot<<15
}

// log reads the write-ahead log with the given number. As in LevelDB, a record that the
// end of the file cuts off counts as never written, and sets cut. Anything else is
// damage.
func (r *reader) log(n uint64) error {
	f, err := r.open(fmt.Sprintf("%06d.log", n))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	truncated, err := records(r.ctx, f, &batch{reader: r})
	r.truncated = r.truncated || truncated
	return err
}

// A sink receives a log's records in pieces. end returns a record's error: damage affects
// only that record, another error ends the reading.
type sink interface {
	begin()
	piece(data []byte)
	end() error
}

// records passes each record of a log to a sink, and calls end for complete ones. After a
// damaged record it continues with the next block, and returns the damage at the end.
// truncated says that the log ends within a record.
func records(ctx context.Context, f fs.File, to sink) (truncated bool, err error) {
	in := bufio.NewReaderSize(f, logBlock)
	block := make([]byte, logBlock)
	var damage error
	open := false // a record has begun
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
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
				rest = nil // the file was allocated longer than its records
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
				open = true
				to.begin()
			case recordMiddle, recordLast:
			default:
				damage, open = errDamaged, false
			}
			if !open {
				continue
			}
			to.piece(data)
			if kind == recordFull || kind == recordLast {
				open = false
				if err := to.end(); errors.Is(err, errDamaged) {
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

// sized splits off bytes that are preceded by their length as a varint.
func sized(b []byte) (data, rest []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, false
	}
	return b[w : w+int(n)], b[w+int(n):], true
}

// readAll reads a small file into memory.
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
