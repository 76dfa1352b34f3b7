package leveldb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/klauspost/compress/snappy"
)

const (
	footerSize   = 48
	tableMagic   = 0xdb4775248b80fb57
	blockTrailer = 5 // compression (1), checksum (4)

	// maxBlock bounds a block, in bytes. Chrome's have 4 KB, or one large value: at most
	// the 10 MiB that an origin's localStorage may have. A block that is larger, packed
	// or unpacked, gives ErrTooMuch.
	maxBlock = 16 << 20
)

// table reads a sorted table: its index, and each data block separately, so that a
// damaged block does not affect the others.
func (r *reader) table(n uint64) error {
	f, err := r.open(fmt.Sprintf("%06d.ldb", n))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = r.open(fmt.Sprintf("%06d.sst", n))
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	in, ok := f.(io.ReaderAt)
	info, err := f.Stat()
	if err != nil || !ok || info.Size() < footerSize {
		return errDamaged
	}
	footer := make([]byte, footerSize)
	if _, err := in.ReadAt(footer, info.Size()-footerSize); err != nil {
		return errDamaged
	}
	if binary.LittleEndian.Uint64(footer[40:]) != tableMagic {
		return errDamaged
	}
	_, rest, ok := handle(footer) // of the filter index
	if !ok {
		return errDamaged
	}
	at, _, ok := handle(rest)
	if !ok {
		return errDamaged
	}
	index, err := new(scratch).block(in, at, info.Size())
	if err != nil {
		return err
	}
	var damage error
	var data scratch
	err = entries(index, func(_, value []byte) error {
		at, _, ok := handle(value)
		if !ok {
			return errDamaged
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		plain, err := data.block(in, at, info.Size())
		if r.unpacked += max(len(plain), int(min(at.size, maxBlock))); r.unpacked > maxUnpacked {
			return ErrTooMuch
		}
		if err == nil {
			err = entries(plain, r.internal)
		}
		if errors.Is(err, errDamaged) {
			damage, err = err, nil
		}
		return err
	})
	return errors.Join(err, damage)
}

// internal adds an entry of a table. Its key is the user's key, followed by eight bytes
// with the sequence number and the kind (value or deletion).
func (r *reader) internal(key, value []byte) error {
	if len(key) < 8 {
		return errDamaged
	}
	tail := binary.LittleEndian.Uint64(key[len(key)-8:])
	if tail&0xff > 1 {
		return errDamaged
	}
	return r.add(key[:len(key)-8], tail>>8, tail&0xff == 1, value)
}

// extent is the position of a block in its file, without its trailer.
type extent struct{ offset, size uint64 }

func handle(b []byte) (at extent, rest []byte, ok bool) {
	offset, w := binary.Uvarint(b)
	if w <= 0 {
		return at, nil, false
	}
	size, v := binary.Uvarint(b[w:])
	if v <= 0 {
		return at, nil, false
	}
	return extent{offset, size}, b[w+v:], true
}

// scratch is memory that is reused for one block after the other.
type scratch struct{ packed, plain []byte }

// block reads a block, checks it and unpacks it. The result is valid until the next call.
func (s *scratch) block(in io.ReaderAt, at extent, fileSize int64) ([]byte, error) {
	end := uint64(fileSize)
	if at.offset > end || at.size > end || at.size+blockTrailer > end-at.offset {
		return nil, errDamaged
	}
	if at.size > maxBlock {
		return nil, ErrTooMuch
	}
	if uint64(cap(s.packed)) < at.size+blockTrailer {
		s.packed = make([]byte, at.size+blockTrailer)
	}
	b := s.packed[:at.size+blockTrailer]
	if _, err := in.ReadAt(b, int64(at.offset)); err != nil {
		return nil, errDamaged
	}
	body, kind := b[:at.size], b[at.size]
	if crc32.Checksum(b[:at.size+1], castagnoli) != unmask(binary.LittleEndian.Uint32(b[at.size+1:])) {
		return nil, errDamaged
	}
	switch kind {
	case 0:
		return body, nil
	case 1:
		n, err := snappy.DecodedLen(body)
		switch {
		case err != nil:
			return nil, errDamaged
		case n > maxBlock:
			return nil, ErrTooMuch
		case n > cap(s.plain):
			s.plain = make([]byte, n)
		}
		out, err := snappy.Decode(s.plain[:cap(s.plain)], body)
		if err != nil {
			return nil, errDamaged
		}
		return out, nil
	default:
		return nil, errDamaged
	}
}

// entries calls do with the entries of a block. Each key may share a prefix with the one
// before.
func entries(b []byte, do func(key, value []byte) error) error {
	if len(b) < 4 {
		return errDamaged
	}
	restarts := uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	if restarts > uint64(len(b)-4)/4 {
		return errDamaged
	}
	var key []byte
	for rest := b[:uint64(len(b)-4)-4*restarts]; len(rest) > 0; {
		var n [3]uint64 // shared, unshared, value
		for i := range n {
			v, w := binary.Uvarint(rest)
			if w <= 0 {
				return errDamaged
			}
			n[i], rest = v, rest[w:]
		}
		if n[0] > uint64(len(key)) || n[1] > uint64(len(rest)) || n[2] > uint64(len(rest))-n[1] {
			return errDamaged
		}
		key = append(key[:n[0]], rest[:n[1]]...)
		if err := do(key, rest[n[1]:n[1]+n[2]]); err != nil {
			return err
		}
		rest = rest[n[1]+n[2]:]
	}
	return nil
}
