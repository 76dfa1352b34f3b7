// Package state holds the state document: what CDP can read and write of a
// browser environment by itself. It is a leaf without I/O.
//
// A [Document] is captured by browser/capture, stored in every archive as
// state.json, and laid down at a restore where the datadir lacks it (see
// "Which copy wins" in ARCHITECTURE.md).
package state

import (
	"encoding/json"
	"slices"
	"time"
)

// SchemaVersion is the version of the document that this package writes.
const SchemaVersion = "1"

// FileName is the document's name inside an archive.
const FileName = "state.json"

// Datadir tells how the archive's datadir was made, and so which copy wins.
type Datadir string

const (
	DatadirClean Datadir = "clean" // Chrome closed it: the datadir wins
	DatadirLive  Datadir = "live"  // copied from a frozen Chrome: state wins
	DatadirCrash Datadir = "crash" // left by a dead Chrome: state wins, where there is one
	DatadirNone  Datadir = "none"  // there is none: the document is all there is
)

// Document is state.json. All strings are as CDP gives them.
type Document struct {
	SchemaVersion string    `json:"schema_version"`
	CapturedAt    time.Time `json:"captured_at"`         // when the reading began
	ReadUntil     time.Time `json:"read_until,omitzero"` // when it had ended; zero where that is not known
	Datadir       Datadir   `json:"datadir"`
	Chrome        Chrome    `json:"chrome"`
	// Complete is false where no reading over CDP was possible (a crash): what
	// the document lacks then says nothing about what the site had.
	Complete bool     `json:"complete"`
	Cookies  []Cookie `json:"cookies"`
	Local    []Area   `json:"local_storage"`
	Tabs     []Tab    `json:"tabs"`
	// IndexedDB is there where no datadir has it: in a document that was made
	// of another tool's state.
	IndexedDB []Databases `json:"indexed_db,omitempty"`
	// Inventory is what the datadir held of every kind as it was archived.
	Inventory Inventory `json:"inventory,omitempty"`
	// FromDisk names the components that were read of the datadir as it was
	// archived: each of their items is in it. Others were read before Chrome
	// closed, and a datadir that differs is newer.
	FromDisk []string `json:"from_disk,omitempty"`
	// Unwritten are storage keys whose localStorage Chrome had not written into
	// the datadir when it ended, though it closed it: these areas are newer here.
	Unwritten []string `json:"unwritten,omitempty"`
	// Unstored is what of the tabs' sessionStorage the save found missing in the
	// datadir that Chrome had closed.
	Unstored []Unstored `json:"unstored,omitempty"`
	// Overrides are what the session's pages were told. They apply again where
	// a restore names none.
	Overrides Overrides `json:"overrides,omitzero"`
	// Permissions are those that clients set over CDP.
	Permissions []Granted `json:"permissions,omitempty"`
	// Passkeys are in no datadir: these are all there are.
	Passkeys Passkeys `json:"passkeys,omitzero"`
	// TabsByURL: the datadir has no session files of these tabs, so they are
	// opened by URL, whatever way the datadir was made.
	TabsByURL bool `json:"tabs_by_url,omitempty"`
	// TabsOnDisk: a Chrome that died had written its session files after this
	// reading, so the tabs are theirs. Tabs are what there were before, with what
	// of their sessionStorage the datadir lacks.
	TabsOnDisk bool `json:"tabs_on_disk,omitempty"`
	// Doubts tells of a Chrome that died what was taken where it could not be told
	// which is newer, its datadir or the last reading.
	Doubts []Missed `json:"doubts,omitempty"`
	// Partial: of an environment, only some origins' state was brought back or saved.
	Partial bool `json:"partial,omitempty"`
	// Extensions are those whose files the archive holds.
	Extensions []Extension `json:"extensions,omitempty"`
	// Missed names what the capture could not read, with the reason.
	Missed []Missed `json:"missed,omitempty"`
}

// IsFromDisk reports whether a component was read of the archived datadir.
func (d Document) IsFromDisk(component string) bool { return slices.Contains(d.FromDisk, component) }

// Written is the document without the localStorage that is not in its datadir.
func (d Document) Written() Document {
	d.Local = slices.DeleteFunc(slices.Clone(d.Local), func(a Area) bool { return slices.Contains(d.Unwritten, a.StorageKey) })
	return d
}

// Strings estimates from below how many bytes the document has as JSON: those of
// the names and values in its cookies and storage, control characters written
// as \u00xx.
func (d Document) Strings() int {
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

// Empty reports whether the document holds nothing that a site keeps.
func (d Document) Empty() bool {
	return len(d.Cookies) == 0 && len(d.Local) == 0 && len(d.IndexedDB) == 0 && len(d.Tabs) == 0
}

// Chrome is the browser that was captured.
type Chrome struct {
	Version   string `json:"version"` // "156.0.8078.79"
	Engine    string `json:"engine"`  // chrome | shell
	UserAgent string `json:"user_agent"`
	// Flags are those of its command line, without the folders of the machine.
	Flags []string `json:"flags,omitempty"`
}

// Cookie has every attribute of CDP's Network.Cookie that Storage.setCookies
// takes back.
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
	// Opaque: its partition has no name (an opaque top-level site), so it can
	// be read and not be set.
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

// Unstored tells how many items of the tabs' sessionStorage, under one storage
// key, were read over CDP and are not in a datadir that Chrome closed since.
type Unstored struct {
	StorageKey string `json:"storage_key"`
	Items      int    `json:"items"`
	// Lay: a restore lays them down. Others are told only, for the site may have
	// cleared them.
	Lay bool `json:"lay"`
}

// Item is one key and value of localStorage or sessionStorage.
type Item struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Tab is one open tab, in window order.
type Tab struct {
	TargetID string         `json:"target_id"` // in the captured Chrome; new after a restore
	URL      string         `json:"url"`
	Title    string         `json:"title"`
	Active   bool           `json:"active"`
	Name     string         `json:"window_name,omitempty"` // window.name of the main frame
	Session  []Area         `json:"session_storage,omitempty"`
	History  []HistoryEntry `json:"history,omitempty"`
	Current  int            `json:"history_index"`
	// Unloaded: the page of URL was not there when the tab was read. The site was
	// down, or had not answered. What the tab has then is what a restore was to apply.
	Unloaded bool `json:"unloaded,omitempty"`
}

// HistoryEntry is one entry of a tab's back/forward list.
type HistoryEntry struct {
	URL   string `json:"url"`
	Title string `json:"title"`
}

// Missed is something the capture could not read.
type Missed struct {
	Component string `json:"component"` // as in the restore report
	Origin    string `json:"origin,omitempty"`
	Reason    string `json:"reason"`
	// InProfile is how many items of it the profile's files were found to hold as
	// they were archived; nil where that is not known.
	InProfile *int `json:"in_profile,omitempty"`
}

// Extension is an extension of the environment. Its files are in the archive,
// as "extensions/<id>/…".
type Extension struct {
	ID      string `json:"id"`     // 32 letters, as Chrome computes it from the manifest's key
	SHA256  string `json:"sha256"` // of its files, hex
	Name    string `json:"name"`
	Version string `json:"version"`
	Enabled bool   `json:"enabled"`
	// Session is its chrome.storage.session, which Chrome keeps in memory only:
	// a JSON value by key.
	Session map[string]json.RawMessage `json:"session_storage,omitempty"`
}

// Origin is the extension's, for reports.
func (e Extension) Origin() string { return "chrome-extension://" + e.ID }
