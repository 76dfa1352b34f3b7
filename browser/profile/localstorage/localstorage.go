// Package localstorage reads and writes the localStorage of a profile at rest. It is one
// LevelDB for all origins. An item's key is "_", the storage key, a NUL and the script's
// own key. For each storage key there are also the times of the last write ("META:") and
// the last use ("METAACCESS:"). This is the format of Chromium 156
// (components/services/storage/dom_storage), schema 1.
package localstorage

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/state"
)

// Folder is the database's folder in a profile.
const Folder = "Local Storage/leveldb"

const (
	prefixItem   = "_"
	prefixWrite  = "META:"
	prefixAccess = "METAACCESS:"
	keyVersion   = "VERSION"
	version      = "1"
)

// Contents is what was read of a profile's localStorage.
type Contents struct {
	// Areas has the area of every storage key with items, sorted; nil if there is no
	// database, or too much in it. Half of a surrogate pair is U+FFFD, as over CDP.
	Areas []state.Area
	// Commits has Chrome's last write of each storage key; nil if even these are too many
	// to read.
	Commits map[string]Commit
	// Damage says what could not be read; "" if everything was read.
	Damage string
	// Truncated says that the last write is incomplete.
	Truncated bool
}

// Commit is Chrome's last write of a storage key's items.
type Commit struct {
	At    time.Time
	Bytes int // bytes of all keys and values after that write, as in Size
	// Emptied says that the write left no item; its time is unknown.
	Emptied bool
}

// Read reads the localStorage of a profile's file system. If the profile has none, the
// result is empty. If the database is too large for leveldb.Read, the result has the
// commits only, and the error is leveldb.ErrTooMuch. The only other error is ctx's.
func Read(ctx context.Context, profile fs.FS) (Contents, error) {
	if _, err := fs.Stat(profile, Folder); errors.Is(err, fs.ErrNotExist) {
		return Contents{Commits: map[string]Commit{}}, nil
	}
	is := func(prefixes ...string) func(key []byte) bool {
		return func(key []byte) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(key), p) })
		}
	}
	db, err := leveldb.Read(ctx, profile, Folder, is(prefixItem, prefixWrite), true)
	if ctx.Err() != nil {
		return Contents{}, ctx.Err()
	}
	if err != nil {
		some, serr := leveldb.Read(ctx, profile, Folder, is(prefixWrite), true)
		if serr != nil {
			return Contents{}, serr
		}
		c := Contents{Damage: some.Damage, Truncated: some.Truncated}
		c.commits(some)
		return c, err
	}
	c := Contents{Damage: db.Damage, Truncated: db.Truncated}
	c.commits(db)
	areas := map[string][]state.Item{}
	for k, v := range db.Entries {
		delete(db.Entries, k) // frees memory: the item is decoded below
		if !strings.HasPrefix(k, prefixItem) {
			continue
		}
		key, item, ok := decodeItem(k, v)
		if !ok {
			c.Damage = "an item is damaged"
			continue
		}
		areas[key] = append(areas[key], item)
	}
	c.Areas = make([]state.Area, 0, len(areas))
	for key, items := range areas {
		slices.SortFunc(items, func(a, b state.Item) int { return strings.Compare(a.Key, b.Key) })
		c.Areas = append(c.Areas, state.Area{StorageKey: key, Items: items})
	}
	slices.SortFunc(c.Areas, func(a, b state.Area) int { return strings.Compare(a.StorageKey, b.StorageKey) })
	return c, nil
}

func (c *Contents) commits(db leveldb.Database) {
	c.Commits = map[string]Commit{}
	for k, v := range db.Entries {
		if owner, ok := strings.CutPrefix(k, prefixWrite); ok {
			c.Commits[asCDP(owner)] = decodeCommit(v)
		}
	}
	for _, k := range db.Deleted {
		if owner, ok := strings.CutPrefix(k, prefixWrite); ok {
			c.Commits[asCDP(owner)] = Commit{Emptied: true}
		}
	}
}

// Unwritten returns the storage keys of a reading over CDP whose state did not reach the
// disk, because Chrome ended before it had written it. since is when the reading began.
// If Chrome has written a key after that, a difference was made by the site.
func (c Contents) Unwritten(read []state.Area, since time.Time) []string {
	if c.Commits == nil {
		return nil // unknown
	}
	var lost []string
	for _, area := range read {
		last, written := c.Commits[area.StorageKey]
		if _, named := state.ParseStorageKey(area.StorageKey); !named || last.Emptied || written && !last.At.Before(since) || c.Has(area) {
			continue
		}
		lost = append(lost, area.StorageKey)
	}
	return lost
}

// Has reports whether the disk has an area as it was read. If there is too much to
// compare, only the size counts.
func (c Contents) Has(area state.Area) bool {
	if c.Areas == nil {
		return c.Commits[area.StorageKey].Bytes == Size(area)
	}
	i := slices.IndexFunc(c.Areas, func(a state.Area) bool { return a.StorageKey == area.StorageKey })
	if i < 0 {
		return len(area.Items) == 0
	}
	items := slices.SortedFunc(slices.Values(area.Items), func(a, b state.Item) int { return strings.Compare(a.Key, b.Key) })
	return slices.Equal(items, c.Areas[i].Items)
}

// Removed reports whether the removal of an item has reached the disk. Chrome may have
// the profile open; what cannot be read counts as not removed.
func Removed(ctx context.Context, profile fs.FS, storageKey, item string) bool {
	wanted := itemKey(onDisk(storageKey), item)
	db, err := leveldb.Read(ctx, profile, Folder, func(key []byte) bool { return string(key) == wanted }, false)
	return err == nil && slices.Contains(db.Deleted, wanted)
}

// asCDP converts a storage key of the database to the form that CDP and all other stores
// use.
func asCDP(owner string) string {
	if strings.Contains(owner, "^") {
		return owner
	}
	return owner + "/"
}

// onDisk is the inverse of asCDP.
func onDisk(storageKey string) string {
	if strings.Contains(storageKey, "^") {
		return storageKey
	}
	return strings.TrimSuffix(storageKey, "/")
}
