package state

import "strings"

// Component names, in the restore report and the capture report.
const (
	ComponentDatadir        = "datadir" // the profile: IndexedDB, caches, service workers, …
	ComponentCookies        = "cookies"
	ComponentLocalStorage   = "local_storage"
	ComponentSessionStorage = "session_storage"
	ComponentTabs           = "tabs"
	ComponentHistory        = "tab_history" // back/forward lists
	ComponentWindowName     = "window_name"
	ComponentPermissions    = "permissions" // set over CDP
	ComponentOverrides      = "overrides"   // viewport, user agent, proxy, …
	ComponentPasskeys       = "passkeys"    // of the virtual authenticator, by site

	// Counted on disk: see Inventory.
	ComponentIndexedDB        = "indexed_db" // databases
	ComponentIndexedDBRecords = "indexed_db_records"
	ComponentCacheStorage     = "cache_storage"   // entries of the Cache API
	ComponentServiceWorkers   = "service_workers" // registrations
	ComponentFileSystem       = "file_system"     // files of the origin private file system
	ComponentStorageBuckets   = "storage_buckets" // those that a site named
	ComponentVisited          = "history"         // addresses visited
	ComponentBookmarks        = "bookmarks"
	ComponentPasswords        = "passwords"
	ComponentAutofill         = "autofill"
	ComponentContentSettings  = "content_settings" // permissions granted or refused in the browser
	ComponentZoom             = "zoom"
	ComponentHSTS             = "hsts"        // hosts that want HTTPS
	ComponentPreferences      = "preferences" // the file that Chrome keeps its settings in
	ComponentExtensions       = "extensions"
	// ComponentExtensionStorage is chrome.storage.session; local, sync and
	// IndexedDB come with the profile.
	ComponentExtensionStorage = "extension_storage"
)

// NoTime is the reason of what a restore had no time for.
const NoTime = "there was no time to lay it down before the first page"

// NotInShell is the reason of what the headless shell has no use for. It is
// not lost: it stays in the environment, and full Chrome has it again.
const NotInShell = "the shell engine does not use it; it stays in the environment"

// TabsUnwanted is the reason of tabs that a create did not ask for, and of what
// goes with them.
const TabsUnwanted = "restore_tabs is false"

// OnPurpose reports whether what the line counts as dropped was not to come: a
// selection or the create left it out, or the engine has no use for it. That is
// no loss.
func (c Component) OnPurpose() bool { return c.purpose() != "" }

// purpose is what such a line's reason begins with.
func (c Component) purpose() string {
	for _, why := range []string{LeftOut, NotInShell, TabsUnwanted} {
		if strings.HasPrefix(c.Reason, why) {
			return why
		}
	}
	return ""
}

// Component is one line of a report: how many items of one kind and origin
// were saved, came back, were dropped, or had expired, and why.
type Component struct {
	Name     string `json:"name"`
	Origin   string `json:"origin"` // "" where the kind has no origin
	Saved    int    `json:"saved"`
	Restored int    `json:"restored"`
	Dropped  int    `json:"dropped"`
	Expired  int    `json:"expired"`
	Reason   string `json:"reason,omitempty"`
	// More is how many lines of other origins are added up in this one.
	More int `json:"more,omitempty"`
}

// OnDisk reports whether the line is of a kind that is counted on disk only.
func (c Component) OnDisk() bool {
	switch c.Name {
	case ComponentIndexedDB, ComponentIndexedDBRecords, ComponentCacheStorage, ComponentServiceWorkers, ComponentFileSystem,
		ComponentStorageBuckets, ComponentVisited, ComponentBookmarks, ComponentPasswords, ComponentAutofill,
		ComponentContentSettings, ComponentZoom, ComponentHSTS, ComponentPreferences:
		return true
	default:
		return false
	}
}
