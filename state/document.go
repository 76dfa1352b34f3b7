// Package state holds the state document: the part of a browser environment that CDP can
// read and write. It is a leaf without I/O.
//
// browser/capture captures a [Document]. Every archive stores it as state.json. A restore
// applies what the profile lacks (see "Which copy wins" in ARCHITECTURE.md).
package state

import (
	"encoding/json"
	"slices"
	"time"
)

// SchemaVersion is the version of the document that this package writes.
const SchemaVersion = "1"

// FileName is the document's name in an archive.
const FileName = "state.json"

// Datadir says how the archive's user data directory was made, and so which copy wins.
type Datadir string

const (
	DatadirClean Datadir = "clean" // Chrome closed it: the user data directory wins
	DatadirLive  Datadir = "live"  // copied from a frozen Chrome: state wins
	DatadirCrash Datadir = "crash" // left by a dead Chrome: state wins, if there is any
	DatadirNone  Datadir = "none"  // there is none: only the document exists
)

// Document is state.json. All strings are as CDP returns them.
type Document struct {
	SchemaVersion string    `json:"schema_version"`
	CapturedAt    time.Time `json:"captured_at"`         // when the capture began
	ReadUntil     time.Time `json:"read_until,omitzero"` // when the capture ended; zero if not known
	Datadir       Datadir   `json:"datadir"`
	Chrome        Chrome    `json:"chrome"`
	// Complete is false if the document could not be read over CDP (after a crash). What
	// such a document lacks may still have existed.
	Complete bool     `json:"complete"`
	Cookies  []Cookie `json:"cookies"`
	Local    []Area   `json:"local_storage"`
	Tabs     []Tab    `json:"tabs"`
	// IndexedDB is set only in a document that was made from another tool's state.
	IndexedDB []Databases `json:"indexed_db,omitempty"`
	// Inventory counts what the user data directory held when it was archived.
	Inventory Inventory `json:"inventory,omitempty"`
	// FromDisk names the components that were read from the archived user data directory,
	// which therefore has all their items. Other components were read before Chrome closed;
	// if the directory differs from them, it is newer.
	FromDisk []string `json:"from_disk,omitempty"`
	// Unwritten lists storage keys whose localStorage Chrome had not yet written when it
	// exited, although it closed the user data directory. For these areas the document is
	// newer.
	Unwritten []string `json:"unwritten,omitempty"`
	// Unstored lists the tabs' sessionStorage that the save did not find in the user data
	// directory after Chrome had closed it.
	Unstored []Unstored `json:"unstored,omitempty"`
	// Overrides are the overrides of the session's pages. They apply again if a restore
	// sets none.
	Overrides Overrides `json:"overrides,omitzero"`
	// Permissions lists the permissions that clients set over CDP.
	Permissions []PermissionGrant `json:"permissions,omitempty"`
	// Passkeys holds all passkeys; the user data directory has none.
	Passkeys Passkeys `json:"passkeys,omitzero"`
	// TabsByURL means that the user data directory has no session files for these tabs.
	// They are opened by URL, however the directory was made.
	TabsByURL bool `json:"tabs_by_url,omitempty"`
	// TabsOnDisk means that Chrome died and had written its session files after this
	// capture, so the files determine the tabs. Tabs then holds the earlier tabs, with the
	// part of their sessionStorage that the user data directory lacks.
	TabsOnDisk bool `json:"tabs_on_disk,omitempty"`
	// Doubts lists, for a Chrome that died, what was used where it is unknown whether the
	// user data directory or the last capture is newer.
	Doubts []Missed `json:"doubts,omitempty"`
	// Partial means that only some origins' state was restored or saved.
	Partial bool `json:"partial,omitempty"`
	// Extensions lists those whose files the archive holds.
	Extensions []Extension `json:"extensions,omitempty"`
	// Missed lists what the capture could not read, with the reason.
	Missed []Missed `json:"missed,omitempty"`
}

// IsFromDisk reports whether a component was read from the archived user data directory.
func (d Document) IsFromDisk(component string) bool { return slices.Contains(d.FromDisk, component) }

// WithoutUnwritten returns the document without the localStorage that is not in its user
// data directory.
func (d Document) WithoutUnwritten() Document {
	d.Local = slices.DeleteFunc(slices.Clone(d.Local), func(a Area) bool { return slices.Contains(d.Unwritten, a.StorageKey) })
	return d
}

// WithoutFindings returns the document without what only a survey of its user data directory
// can find, for a document that has none or that somebody uploaded.
func (d Document) WithoutFindings() Document {
	d.FromDisk, d.Unwritten, d.Unstored = nil, nil, nil
	d.Missed = slices.Clone(d.Missed)
	for i := range d.Missed {
		d.Missed[i].InProfile = nil
	}
	return d
}

// MinJSONSize returns a lower bound for the document's size as JSON, in bytes. It counts the
// names and values of cookies and storage, with control characters written as \u00xx.
func (d Document) MinJSONSize() int {
	n := 0
	for _, c := range d.Cookies {
		n += written(c.Name) + written(c.Value)
	}
	areas := func(all []Area) {
		for _, area := range all {
			for _, item := range area.Items {
				n += written(item.Key) + written(item.Value)
			}
		}
	}
	areas(d.Local)
	for _, tab := range d.Tabs {
		areas(tab.Session)
	}
	return n
}

func written(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\b', c == '\f', c == '\n', c == '\r', c == '\t', c == '"', c == '\\':
			n++
		case c < ' ', c == '<', c == '>', c == '&':
			n += len(`\u0000`) - 1
		}
	}
	return n
}

// Empty reports whether the document holds nothing that a site stores.
func (d Document) Empty() bool {
	return len(d.Cookies) == 0 && len(d.Local) == 0 && len(d.IndexedDB) == 0 && len(d.Tabs) == 0
}

// Chrome describes the captured browser.
type Chrome struct {
	Version   string `json:"version"` // "156.0.8078.79"
	Engine    string `json:"engine"`  // chrome | shell
	UserAgent string `json:"user_agent"`
	// Flags lists its command line flags, without the machine's folders.
	Flags []string `json:"flags,omitempty"`
}

// Cookie has every attribute of CDP's Network.Cookie that Storage.setCookies accepts.
type Cookie struct {
	Name         string        `json:"name"`
	Value        string        `json:"value"`
	Domain       string        `json:"domain"` // leading dot: a domain cookie
	Path         string        `json:"path"`
	Expires      float64       `json:"expires"` // seconds since 1970; -1 for a session cookie
	HTTPOnly     bool          `json:"http_only"`
	Secure       bool          `json:"secure"`
	Session      bool          `json:"session"`
	SameSite     string        `json:"same_site,omitempty"` // Strict | Lax | None
	Priority     string        `json:"priority,omitempty"`  // Low | Medium | High
	SourceScheme string        `json:"source_scheme,omitempty"`
	SourcePort   int64         `json:"source_port"`
	Partition    *PartitionKey `json:"partition_key,omitempty"`
	// Opaque means that the partition has no name (an opaque top-level site). Such a cookie
	// can be read but not set.
	Opaque bool `json:"partition_key_opaque,omitempty"`
}

// PartitionKey is the key of a partitioned (CHIPS) cookie.
type PartitionKey struct {
	TopLevelSite         string `json:"top_level_site"`
	HasCrossSiteAncestor bool   `json:"has_cross_site_ancestor"`
}

// Area is one storage area: the items of one storage key.
type Area struct {
	StorageKey string `json:"storage_key"` // CDP Storage.getStorageKey: "https://a.example/" or partitioned
	Items      []Item `json:"items"`
}

// Unstored counts items of the tabs' sessionStorage under one storage key. They were read
// over CDP, but the user data directory that Chrome then closed lacks them.
type Unstored struct {
	StorageKey string `json:"storage_key"`
	Items      int    `json:"items"`
	// Apply means that a restore writes the items. Other items are only reported, because
	// the site may have cleared them.
	Apply bool `json:"lay"`
}

// Item is one key and value of localStorage or sessionStorage.
type Item struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Tab is one open tab, in window order.
type Tab struct {
	TargetID string         `json:"target_id"` // in the captured Chrome; it changes with a restore
	URL      string         `json:"url"`
	Title    string         `json:"title"`
	Active   bool           `json:"active"`
	Name     string         `json:"window_name,omitempty"` // window.name of the main frame
	Session  []Area         `json:"session_storage,omitempty"`
	History  []HistoryEntry `json:"history,omitempty"`
	Current  int            `json:"history_index"`
	// Unloaded means that the page of URL was not loaded when the tab was read, because the
	// site was down or had not responded. The tab then holds what a restore was to apply.
	Unloaded bool `json:"unloaded,omitempty"`
	// ErrorPage means that the tab had loaded and then failed to load the page of URL, so
	// that it showed Chrome's error page when it was read.
	ErrorPage bool `json:"error_page,omitempty"`
}

// HistoryEntry is one entry of a tab's back/forward list.
type HistoryEntry struct {
	URL   string `json:"url"`
	Title string `json:"title"`
}

// Missed is something that the capture could not read.
type Missed struct {
	Component string `json:"component"` // as in the restore report
	Origin    string `json:"origin,omitempty"`
	Reason    string `json:"reason"`
	// InProfile counts the items of it that the profile's files held when they were
	// archived; nil if not known.
	InProfile *int `json:"in_profile,omitempty"`
}

// Extension is an extension of the environment. The archive holds its files as
// "extensions/<id>/…".
type Extension struct {
	ID      string `json:"id"`     // 32 letters, as Chrome computes it from the manifest's key
	SHA256  string `json:"sha256"` // of its files, hex
	Name    string `json:"name"`
	Version string `json:"version"`
	Enabled bool   `json:"enabled"`
	// Session is its chrome.storage.session, which Chrome keeps only in memory. It maps
	// keys to JSON values.
	Session map[string]json.RawMessage `json:"session_storage,omitempty"`
}

// Origin returns the extension's origin, for reports.
func (e Extension) Origin() string { return "chrome-extension://" + e.ID }
