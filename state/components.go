package state

import "github.com/stasisd/stasis/state/report"

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

	// Counted on disk; see Inventory.
	ComponentIndexedDB        = "indexed_db" // databases
	ComponentIndexedDBRecords = "indexed_db_records"
	ComponentCacheStorage     = "cache_storage"   // entries of the Cache API
	ComponentServiceWorkers   = "service_workers" // registrations
	ComponentFileSystem       = "file_system"     // files of the origin private file system
	ComponentStorageBuckets   = "storage_buckets" // those that a site named
	ComponentVisited          = "history"         // visited addresses
	ComponentBookmarks        = "bookmarks"
	ComponentPasswords        = "passwords"
	ComponentAutofill         = "autofill"
	ComponentContentSettings  = "content_settings" // permissions granted or refused in the browser
	ComponentZoom             = "zoom"
	ComponentHSTS             = "hsts"        // hosts that require HTTPS
	ComponentPreferences      = "preferences" // the file with Chrome's settings
	ComponentExtensions       = "extensions"
	// ComponentExtensionStorage is chrome.storage.session. local, sync and IndexedDB are
	// part of the profile.
	ComponentExtensionStorage = "extension_storage"
)

// Component is a line of a report; its name is one of the constants above.
type Component = report.Component

// CountedOnDisk reports whether a component is counted only on disk.
func CountedOnDisk(component string) bool {
	switch component {
	case ComponentIndexedDB, ComponentIndexedDBRecords, ComponentCacheStorage, ComponentServiceWorkers, ComponentFileSystem,
		ComponentStorageBuckets, ComponentVisited, ComponentBookmarks, ComponentPasswords, ComponentAutofill,
		ComponentContentSettings, ComponentZoom, ComponentHSTS, ComponentPreferences:
		return true
	default:
		return false
	}
}
