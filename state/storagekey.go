package state

import "strings"

// StorageKey is a storage key taken apart: whose storage it is, and below
// which other site. Strings are as Chromium serialises them (StorageKey in
// blink/public/common/storage_key).
type StorageKey struct {
	Origin string // "https://a.example", without a slash at the end
	// TopLevelSite is the site of the tab in which a frame of Origin holds
	// this storage, where that is another site; "" elsewhere.
	TopLevelSite string
	// CrossSiteAncestor: the tab is of the origin's own site, but between it
	// and the frame stands another site.
	CrossSiteAncestor bool
}

// Separators of a serialised key: what a caret and a digit introduce.
const (
	keyTopLevelSite = "^0"
	keyAncestor     = "^31"
)

// ParseStorageKey takes apart what CDP's Storage.getStorageKey gives. It is
// false for a key without a name to reach it by: one with a nonce, or below an
// opaque site.
func ParseStorageKey(serialised string) (StorageKey, bool) {
	base, rest := serialised, ""
	if i := strings.IndexByte(serialised, '^'); i >= 0 {
		base, rest = serialised[:i], serialised[i:]
	}
	key := StorageKey{Origin: strings.TrimSuffix(base, "/")}
	if !strings.Contains(key.Origin, "://") {
		return StorageKey{}, false
	}
	switch {
	case rest == "":
	case rest == keyAncestor:
		key.CrossSiteAncestor = true
	case strings.HasPrefix(rest, keyTopLevelSite) && strings.Contains(rest, "://") && strings.LastIndexByte(rest, '^') == 0:
		key.TopLevelSite = rest[len(keyTopLevelSite):]
	default:
		return StorageKey{}, false
	}
	return key, true
}

// Partitioned reports whether the storage is of a frame below another site.
func (k StorageKey) Partitioned() bool { return k.TopLevelSite != "" || k.CrossSiteAncestor }

// String is the key as Chromium serialises it.
func (k StorageKey) String() string {
	switch {
	case k.TopLevelSite != "":
		return k.Origin + "/" + keyTopLevelSite + k.TopLevelSite
	case k.CrossSiteAncestor:
		return k.Origin + "/" + keyAncestor
	default:
		return k.Origin + "/"
	}
}
