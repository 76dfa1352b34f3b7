// Package sessionstorage reads the sessionStorage of a profile at rest. It is one LevelDB
// for all tabs. The key "namespace-", a tab's GUID, "-" and a storage key has the number
// of a map as its value. The map's items have the keys "map-", that number, "-" and the
// script's own key. Duplicated tabs share a map until one of them writes. Keys are UTF-8,
// values UTF-16. This is the format of Chromium 156
// (components/services/storage/dom_storage).
//
// The package finds what a reading over CDP has and the disk lacks: Chrome may exit with
// status 0 during its last write, or before it.
package sessionstorage

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/fault"
)

// Folder is the database's folder in a profile.
const Folder = "Session Storage"

const (
	prefixTab  = "namespace-"
	guid       = 36 // characters
	prefixItem = "map-"
)

// Contents is what was read of a profile's sessionStorage.
type Contents struct {
	// Damage says what could not be read; "" if everything was read.
	Damage string
	// Truncated says that the last write is incomplete.
	Truncated bool

	// areas has the areas of each storage key, one for each tab that has some, including
	// closed tabs; nil if they were not read.
	areas map[string][]diskArea
	// hasValues says that the values were read too, which is so unless there was too much
	// data.
	hasValues bool
}

// diskArea is one tab's area of one storage key on disk.
type diskArea struct {
	number  string // of its map
	items   map[string]string
	removed map[string]bool // items whose removal is still in the files
}

// Read reads the sessionStorage of a profile's file system. If the profile has none, the
// result is empty. If the database is too large for leveldb.Read, Read leaves the values
// out. If there are too many keys as well, the error is leveldb.ErrTooMuch. The only
// other error is ctx's.
func Read(ctx context.Context, profile fs.FS) (Contents, error) {
	if _, err := fs.Stat(profile, Folder); errors.Is(err, fs.ErrNotExist) {
		return Contents{areas: map[string][]diskArea{}, hasValues: true}, nil
	}
	has := func(prefixes ...string) func(key []byte) bool {
		return func(key []byte) bool {
			for _, prefix := range prefixes {
				if strings.HasPrefix(string(key), prefix) {
					return true
				}
			}
			return false
		}
	}
	tabs, err := leveldb.Read(ctx, profile, Folder, has(prefixTab), true)
	if err != nil {
		return Contents{}, err
	}
	items, err := leveldb.Read(ctx, profile, Folder, has(prefixItem), true)
	hasValues := err == nil
	if !hasValues {
		if items, err = leveldb.Read(ctx, profile, Folder, has(prefixItem), false); err != nil {
			return Contents{}, err
		}
	}
	c := Contents{Damage: items.Damage, Truncated: items.Truncated, areas: map[string][]diskArea{}, hasValues: hasValues}
	maps := map[string]diskArea{}
	of := func(key string) (a diskArea, item string) {
		number, item, _ := strings.Cut(key[len(prefixItem):], "-")
		a, known := maps[number]
		if !known {
			a = diskArea{number: number, items: map[string]string{}, removed: map[string]bool{}}
			maps[number] = a
		}
		return a, item
	}
	for key, value := range items.Entries {
		a, item := of(key)
		a.items[item] = decode(value)
		delete(items.Entries, key) // frees memory: the value has been decoded
	}
	for _, key := range items.Deleted {
		a, item := of(key)
		a.removed[item] = true
	}
	for key, number := range tabs.Entries {
		if len(key) <= len(prefixTab)+guid+1 {
			continue
		}
		a := maps[string(number)]
		a.number = string(number)
		owner := key[len(prefixTab)+guid+1:]
		c.areas[owner] = append(c.areas[owner], a)
	}
	return c, nil
}

// decode decodes a value. Half of a surrogate pair becomes U+FFFD, as it does over CDP.
func decode(b []byte) string {
	out := make([]byte, 0, len(b)/2)
	for len(b) >= 2 {
		r := rune(binary.LittleEndian.Uint16(b))
		if b = b[2:]; utf16.IsSurrogate(r) {
			if len(b) >= 2 {
				r = utf16.DecodeRune(r, rune(binary.LittleEndian.Uint16(b)))
			}
			if r >= utf16FirstPair {
				b = b[2:]
			} else {
				r = utf8.RuneError
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// utf16FirstPair is the first character that takes two UTF-16 units.
const utf16FirstPair = 0x10000

// Known reports whether the profile's sessionStorage was read completely.
func (c Contents) Known() bool { return c.areas != nil && c.Damage == "" }

// Items counts the items of all tabs by storage key.
func (c Contents) Items() map[string]int {
	counts := map[string]int{}
	for owner, areas := range c.areas {
		counted := map[string]bool{}
		for _, a := range areas {
			if !counted[a.number] {
				counted[a.number] = true
				counts[owner] += len(a.items)
			}
		}
	}
	return counts
}

// Forget removes the sessionStorage of some storage keys, of all tabs, from the profile
// in a folder. If the database is too large to read or damaged, Forget leaves it
// unchanged and returns done false.
func Forget(ctx context.Context, profile *os.Root, storageKeys map[string]bool) (done bool, err error) {
	const op = "sessionstorage.forget"
	db, err := leveldb.Read(ctx, profile.FS(), Folder, func([]byte) bool { return true }, true)
	if ctx.Err() != nil {
		return false, fault.Wrap(ctx.Err(), fault.Timeout, op, "the tabs' sessionStorage was not read in time")
	}
	if err != nil || db.Damage != "" {
		return false, nil
	}
	for key := range db.Entries {
		if strings.HasPrefix(key, prefixTab) && len(key) > len(prefixTab)+guid+1 && storageKeys[key[len(prefixTab)+guid+1:]] {
			delete(db.Entries, key) // nothing refers to its map then
		}
	}
	if err := profile.RemoveAll(Folder); err != nil {
		return false, fault.Wrap(err, fault.StoreFailed, op, "the tabs' sessionStorage cannot be replaced")
	}
	err = leveldb.Write(profile, Folder, db.Entries)
	return err == nil, fault.Wrap(err, fault.StoreFailed, op, "the tabs' sessionStorage cannot be written")
}
