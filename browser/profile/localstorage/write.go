package localstorage

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Write writes localStorage into a profile that no Chrome has read yet. The storage keys of
// the given areas then hold exactly the areas' items. All others hold what could be read
// of them, so a damaged database is repaired. Write writes a new database and then replaces
// the old one, so the result is either the old state or the new one.
//
// Write returns a report line for each area that it has written, and the areas that must be
// written through Chrome instead: those whose storage key may not be in Chrome's
// spelling, and all of them if the database is too large to read.
func Write(ctx context.Context, root *os.Root, areas []state.Area, now time.Time) (lines []state.Component, rest []state.Area, err error) {
	const op = "localstorage.lay"
	db, err := leveldb.Read(ctx, root.FS(), Folder, func([]byte) bool { return true }, true)
	if ctx.Err() != nil {
		return nil, nil, fault.Wrap(ctx.Err(), fault.Timeout, op, "the localStorage was not read in time")
	}
	if err != nil {
		return nil, areas, nil
	}
	entries := db.Entries
	owned := map[string][]string{} // keys of the items, by owner
	for k := range entries {
		if owner, _, ok := strings.Cut(k, "\x00"); ok && strings.HasPrefix(k, prefixItem) {
			owned[owner[len(prefixItem):]] = append(owned[owner[len(prefixItem):]], k)
		}
	}
	for _, area := range areas {
		owner := onDisk(area.StorageKey)
		if _, known := owned[owner]; !known && !canonical(owner) {
			rest = append(rest, area)
			continue
		}
		replaceItems(entries, owner, owned[owner], area.Items, now)
		owned[owner] = nil
		lines = append(lines, state.Component{Name: state.ComponentLocalStorage, Origin: area.StorageKey, Saved: len(area.Items), Restored: len(area.Items)})
	}
	entries[keyVersion] = []byte(version)
	return lines, rest, fault.Wrap(replaceDatabase(root, entries), fault.StoreFailed, op, "the localStorage could not be written")
}

// replaceItems makes an owner's entries hold exactly the given items. It keeps an entry
// that reads the same: CDP cannot carry half of a surrogate pair.
func replaceItems(entries map[string][]byte, owner string, there []string, items []state.Item, now time.Time) {
	same := map[state.Item]bool{}
	wanted := map[state.Item]bool{}
	for _, item := range items {
		wanted[item] = true
	}
	for _, k := range there {
		if _, item, ok := decodeItem(k, entries[k]); ok && wanted[item] {
			same[item] = true
		} else {
			delete(entries, k)
		}
	}
	for _, item := range items {
		if !same[item] {
			entries[itemKey(owner, item.Key)] = encode(item.Value)
		}
	}
	if len(items) == 0 {
		delete(entries, prefixWrite+owner)
		delete(entries, prefixAccess+owner)
		return
	}
	entries[prefixWrite+owner] = encodeCommit(Commit{At: now, Bytes: Size(state.Area{Items: items})})
	entries[prefixAccess+owner] = encodeTime(now)
}

// replaceDatabase replaces the database by a new one.
func replaceDatabase(root *os.Root, entries map[string][]byte) error {
	parent, beside := path.Dir(Folder), Folder+".new"
	if info, err := root.Lstat(parent); err == nil && !info.IsDir() {
		if err := root.Remove(parent); err != nil {
			return err
		}
	}
	if err := root.Mkdir(parent, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, step := range []func() error{
		func() error { return root.RemoveAll(beside) },
		func() error { return leveldb.Write(root, beside, entries) },
		func() error { return root.RemoveAll(Folder) },
		func() error { return root.Rename(beside, Folder) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// plainOrigin matches an origin in Chrome's only spelling of it, for kinds where that is
// easy to check. It does not match IPv6 hosts and hosts in other scripts.
var plainOrigin = regexp.MustCompile(`^(https?)://((?:[a-z0-9-]+\.)*[a-z0-9-]+)(?::([1-9][0-9]{0,4}))?$`)

func canonical(origin string) bool {
	m := plainOrigin.FindStringSubmatch(origin)
	if m == nil || m[1] == "http" && m[3] == "80" || m[1] == "https" && m[3] == "443" || strings.Contains("."+m[2], ".xn--") {
		return false
	}
	// If the last label starts with a digit, Chrome parses the host as an IPv4 address.
	if last := m[2][strings.LastIndexByte(m[2], '.')+1:]; last[0] >= '0' && last[0] <= '9' {
		_, err := netip.ParseAddr(m[2])
		return err == nil
	}
	return true
}
