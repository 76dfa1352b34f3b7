// Package sessionstorage reads the sessionStorage of a profile at rest: one
// LevelDB for all tabs, in which "namespace-", a tab's GUID, "-" and a storage
// key lead to the number of a map, whose items are under "map-", that number,
// "-" and the script's own key. Tabs that were duplicated share a map until one
// writes. Keys are UTF-8, values UTF-16. That is the form of Chromium 156
// (components/services/storage/dom_storage).
//
// It tells what of a reading over CDP did not reach the disk: Chrome may end
// with status 0 in the middle of its last write, or before it.
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

// Folder is where the database lies in a profile.
const Folder = "Session Storage"

const (
	prefixTab  = "namespace-"
	guid       = 36 // characters
	prefixItem = "map-"
)

// Contents is what was read of a profile's sessionStorage.
type Contents struct {
	// Damage says what could not be read, "" where all could.
	Damage string
	// Cut: the last write is not there whole.
	Cut bool

	// areas are those of each storage key, one for each tab that has some, closed
	// ones among them; nil where they were not read.
	areas map[string][]onDisk
	// valued: there was not too much to read the values as well.
	valued bool
}

// onDisk is what one tab has under one storage key.
type onDisk struct {
	number  string // of its map
	items   map[string]string
	removed map[string]bool // items whose removal is still in the files
}

// Read reads the sessionStorage of a profile's file system; one without any is
// empty. Of one with too much for leveldb.Read the values stay unread; where
// there are too many keys too, the error is leveldb.ErrTooMuch; the only other
// one is that of ctx.
func Read(ctx context.Context, profile fs.FS) (Contents, error) {
	if _, err := fs.Stat(profile, Folder); errors.Is(err, fs.ErrNotExist) {
		return Contents{areas: map[string][]onDisk{}, valued: true}, nil
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
	valued := err == nil
	if !valued {
		if items, err = leveldb.Read(ctx, profile, Folder, has(prefixItem), false); err != nil {
			return Contents{}, err
		}
	}
	c := Contents{Damage: items.Damage, Cut: items.Cut, areas: map[string][]onDisk{}, valued: valued}
	maps := map[string]onDisk{}
	of := func(key string) (a onDisk, item string) {
		number, item, _ := strings.Cut(key[len(prefixItem):], "-")
		a, known := maps[number]
		if !known {
			a = onDisk{number: number, items: map[string]string{}, removed: map[string]bool{}}
			maps[number] = a
		}
		return a, item
	}
	for key, value := range items.Entries {
		a, item := of(key)
		a.items[item] = decode(value)
		delete(items.Entries, key) // it is not held twice
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

// decode reads a value. Half of a surrogate pair becomes U+FFFD, as it does over
// CDP.
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

// utf16FirstPair is the first character that takes two units.
const utf16FirstPair = 0x10000

// Known reports whether it was read what the profile holds.
func (c Contents) Known() bool { return c.areas != nil && c.Damage == "" }

// Items counts the items of all tabs, by storage key.
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

// Forget takes some storage keys' sessionStorage of all tabs out of the profile
// in a folder, and leaves that of all others. Where there is more in it than is
// read, it is left as it is, and done is false.
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
			delete(db.Entries, key) // its map is nobody's then
		}
	}
	if err := profile.RemoveAll(Folder); err != nil {
		return false, fault.Wrap(err, fault.StoreFailed, op, "the tabs' sessionStorage cannot be replaced")
	}
	err = leveldb.Write(profile, Folder, db.Entries)
	return err == nil, fault.Wrap(err, fault.StoreFailed, op, "the tabs' sessionStorage cannot be written")
}
