package inventory

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stasisd/stasis/browser/inventory/leveldb"
	"github.com/stasisd/stasis/state"
)

const (
	localStorage   = "Local Storage/leveldb"
	sessionStorage = "Session Storage"
)

// local reads localStorage (components/services/storage/dom_storage): the key
// of an item is "_", its storage key, a NUL, and the script's key.
func (s *survey) local() {
	if !s.exists(localStorage) {
		return
	}
	db, err := leveldb.Read(s.fsys, localStorage, func(key []byte) bool {
		return len(key) > 0 && key[0] == '_'
	}, true)
	if err != nil {
		s.add(state.Holding{Component: state.ComponentLocalStorage, Uncounted: err.Error()})
		return
	}
	areas := map[string][]state.Item{}
	byOrigin := map[string]int{}
	damage := db.Damage
	for k, v := range db.Entries {
		delete(db.Entries, k) // it is not held twice
		origin, rest, ok := strings.Cut(k[1:], "\x00")
		key, keyOK := domString([]byte(rest))
		value, valueOK := domString(v)
		if !ok || !keyOK || !valueOK {
			damage = "an item is damaged"
			continue
		}
		if !strings.Contains(origin, "^") {
			origin += "/" // as CDP and every other store write it
		}
		byOrigin[origin]++
		areas[origin] = append(areas[origin], state.Item{Key: key, Value: value})
	}
	s.areas = make([]state.Area, 0, len(areas))
	for origin, items := range areas {
		slices.SortFunc(items, func(a, b state.Item) int { return strings.Compare(a.Key, b.Key) })
		s.areas = append(s.areas, state.Area{StorageKey: origin, Items: items})
	}
	slices.SortFunc(s.areas, func(a, b state.Area) int { return strings.Compare(a.StorageKey, b.StorageKey) })
	s.counts(state.ComponentLocalStorage, byOrigin, damage, "")
}

// domString decodes a string of DOM storage: a byte that names the encoding,
// 0 for UTF-16 in little endian and 1 for Latin-1, and the characters. Half of
// a surrogate pair becomes U+FFFD, as it does over CDP.
func domString(b []byte) (string, bool) {
	if len(b) == 0 {
		return "", false
	}
	switch chars := b[1:]; b[0] {
	case 0:
		if len(chars)%2 != 0 {
			return "", false
		}
		units := make([]uint16, len(chars)/2)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(chars[2*i:])
		}
		return string(utf16.Decode(units)), true
	case 1:
		out := make([]byte, 0, len(chars))
		for _, c := range chars {
			out = utf8.AppendRune(out, rune(c))
		}
		return string(out), true
	default:
		return "", false
	}
}

// sessionStorage looks for damage only: the database also holds tabs that were
// closed, and how much the open ones have is read over CDP.
func (s *survey) sessionStorage() {
	if !s.exists(sessionStorage) {
		return
	}
	db, err := leveldb.Read(s.fsys, sessionStorage, func(key []byte) bool { return bytes.HasPrefix(key, []byte("map-")) }, false)
	if err == nil && db.Damage != "" {
		s.add(state.Holding{Component: state.ComponentSessionStorage, Damage: db.Damage})
	}
}
