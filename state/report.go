package state

// Component names, in the restore report and the capture report.
const (
	ComponentDatadir        = "datadir" // the profile: IndexedDB, caches, service workers, …
	ComponentCookies        = "cookies"
	ComponentLocalStorage   = "local_storage"
	ComponentSessionStorage = "session_storage"
	ComponentTabs           = "tabs"
	ComponentHistory        = "tab_history" // back/forward lists
	ComponentWindowName     = "window_name"
	ComponentIndexedDB      = "indexed_db"
)

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
}
