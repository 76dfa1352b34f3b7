package localstorage

import (
	"encoding/binary"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stasisd/stasis/state"
)

// These values are the byte before a string's characters.
const (
	formatUTF16  = 0 // little endian
	formatLatin1 = 1
)

func itemKey(owner, key string) string { return prefixItem + owner + "\x00" + string(encode(key)) }

func decodeItem(k string, v []byte) (storageKey string, item state.Item, ok bool) {
	owner, key, ok := strings.Cut(k[len(prefixItem):], "\x00")
	if !ok {
		return "", item, false
	}
	var keyOK, valueOK bool
	item.Key, keyOK = decode([]byte(key))
	item.Value, valueOK = decode(v)
	return asCDP(owner), item, keyOK && valueOK
}

// encode encodes a string as Chrome does: in Latin-1 if possible.
func encode(s string) []byte {
	latin := []byte{formatLatin1}
	for _, r := range s {
		if r > 0xff {
			wide := []byte{formatUTF16}
			for _, unit := range utf16.Encode([]rune(s)) {
				wide = binary.LittleEndian.AppendUint16(wide, unit)
			}
			return wide
		}
		latin = append(latin, byte(r))
	}
	return latin
}

// decode decodes such a string. Half of a surrogate pair becomes U+FFFD, as it does over
// CDP.
func decode(b []byte) (string, bool) {
	if len(b) == 0 {
		return "", false
	}
	switch chars := b[1:]; b[0] {
	case formatUTF16:
		if len(chars)%2 != 0 {
			return "", false
		}
		units := make([]uint16, len(chars)/2)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(chars[2*i:])
		}
		return string(utf16.Decode(units)), true
	case formatLatin1:
		out := make([]byte, 0, len(chars))
		for _, c := range chars {
			out = utf8.AppendRune(out, rune(c))
		}
		return string(out), true
	default:
		return "", false
	}
}

// Size returns the number of bytes of an area's keys and values in the database.
func Size(area state.Area) int {
	n := 0
	for _, item := range area.Items {
		n += len(encode(item.Key)) + len(encode(item.Value))
	}
	return n
}

// epoch is 1970 in Chrome's time, in microseconds since 1601.
const epoch = 11644473600_000_000

// A commit is a protobuf message: its time in field 1, the number of bytes in field 2. A
// last use is a message with field 1 only.
const (
	tagTime  = 1 << 3
	tagBytes = 2 << 3
)

func encodeTime(at time.Time) []byte {
	return binary.AppendUvarint([]byte{tagTime}, uint64(at.UnixMicro()+epoch))
}

func encodeCommit(c Commit) []byte {
	return binary.AppendUvarint(append(encodeTime(c.At), tagBytes), uint64(c.Bytes))
}

// decodeCommit decodes a commit. An unknown format gives a time in 1601.
func decodeCommit(b []byte) (c Commit) {
	for len(b) > 0 {
		tag := b[0]
		n, w := binary.Uvarint(b[1:])
		if w <= 0 {
			break
		}
		switch tag {
		case tagTime:
			c.At = time.UnixMicro(int64(n) - epoch)
		case tagBytes:
			c.Bytes = int(n)
		}
		b = b[1+w:]
	}
	return c
}
