package state

import "strings"

// StorageKey is a parsed storage key: the origin that owns the storage, and the site that
// embeds it. Strings are as Chromium serialises them (StorageKey in
// blink/public/common/storage_key).
type StorageKey struct {
	Origin string // "https://a.example", without a trailing slash
	// TopLevelSite is the tab's site, if a frame of Origin holds this storage below another
	// site; else "".
	TopLevelSite string
	// CrossSiteAncestor means that the tab has the origin's own site, but a frame of
	// another site is between the tab and the frame.
	CrossSiteAncestor bool
}

// Separators of a serialised key: a caret and a digit.
const (
	keyTopLevelSite = "^0"
	keyAncestor     = "^31"
)

// ParseStorageKey parses a key as CDP's Storage.getStorageKey returns it. ok is false for
// a key that cannot be addressed by name: one with a nonce, or below an opaque site.
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

// Partitioned reports whether the storage belongs to a frame below another site.
func (k StorageKey) Partitioned() bool { return k.TopLevelSite != "" || k.CrossSiteAncestor }

// String returns the key as Chromium serialises it.
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
