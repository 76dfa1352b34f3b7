package leveldb

import (
	"encoding/binary"
	"slices"
)

// batch is the sink of write batches: a sequence number, a count, and the operations.
// Chrome writes the localStorage of all its pages as one batch of any length. So only the
// picked operations are kept, and they count only once the batch is complete.
type batch struct {
	*reader
	buffered []byte // received and not decoded yet
	skip     uint64 // remaining bytes of a value that was not requested
	seq      uint64
	haveHead bool
	picked   []operation
	bytes    int // of picked
	err      error
}

type operation struct {
	key, value []byte
	seq        uint64
	live       bool
}

const batchHead = 12

func (b *batch) begin() { *b = batch{reader: b.reader, buffered: b.buffered[:0]} }

func (b *batch) piece(data []byte) {
	if b.err != nil {
		return
	}
	passed := min(b.skip, uint64(len(data)))
	b.skip -= passed
	b.buffered = append(b.buffered, data[passed:]...)
	rest := b.buffered
	if !b.haveHead && len(rest) >= batchHead {
		b.seq, b.haveHead = binary.LittleEndian.Uint64(rest), true
		rest = rest[batchHead:]
	}
	for b.haveHead && b.err == nil && len(rest) > 0 {
		if b.err = b.ctx.Err(); b.err != nil {
			break
		}
		n := b.operation(rest)
		if n == 0 {
			break
		}
		rest = rest[n:]
	}
	if len(rest) < len(b.buffered) {
		b.buffered = append(b.buffered[:0], rest...)
	}
}

// operation decodes one operation and returns the length of the part that has arrived. It
// returns 0 if too little has arrived, or if b.err is set.
func (b *batch) operation(data []byte) int {
	live := data[0] == 1
	if data[0] > 1 {
		b.err = errDamaged
		return 0
	}
	key, rest, ok := b.sized(data[1:])
	if !ok {
		return 0
	}
	o, picked := operation{key: key, seq: b.seq, live: live}, b.pick(key)
	if live {
		n, w := binary.Uvarint(rest)
		switch {
		case w < 0:
			b.err = errDamaged
			return 0
		case w == 0:
			return 0
		case !b.values || !picked:
			there := min(n, uint64(len(rest)-w))
			b.skip, rest = n-there, rest[uint64(w)+there:]
		default:
			if o.value, rest, ok = b.sized(rest); !ok {
				return 0
			}
		}
	}
	b.seq++
	if picked {
		b.keep(o)
	}
	return len(data) - len(rest)
}

// sized is the function of the same name, for data that is buffered until it is complete.
func (b *batch) sized(data []byte) (value, rest []byte, ok bool) {
	n, w := binary.Uvarint(data)
	switch {
	case w < 0:
		b.err = errDamaged
	case n > MaxBytes:
		b.err = ErrTooMuch
	default:
		return sized(data)
	}
	return nil, nil, false
}

func (b *batch) keep(o operation) {
	o.key, o.value = slices.Clone(o.key), slices.Clone(o.value)
	b.picked = append(b.picked, o)
	if b.bytes += len(o.key) + len(o.value); b.bytes > MaxBytes || len(b.picked) > MaxEntries {
		b.err = ErrTooMuch
	}
}

// end adds the picked operations, even if a later part of the batch is damaged.
func (b *batch) end() error {
	for _, o := range b.picked {
		if err := b.add(o.key, o.seq, o.live, o.value); err != nil {
			return err
		}
	}
	b.picked = nil
	if b.err == nil && (len(b.buffered) > 0 || b.skip > 0 || !b.haveHead) {
		return errDamaged
	}
	return b.err
}

// wholeRecord is the sink of records that are handled in one piece.
type wholeRecord struct {
	do     func(record []byte) error
	record []byte
}

func (w *wholeRecord) begin() { w.record = w.record[:0] }

// piece keeps no more than is needed to see that a record is too long.
func (w *wholeRecord) piece(data []byte) {
	if len(w.record) <= MaxBytes {
		w.record = append(w.record, data...)
	}
}

func (w *wholeRecord) end() error {
	if len(w.record) > MaxBytes {
		return ErrTooMuch
	}
	return w.do(w.record)
}
