package restore

import "github.com/stasisd/stasis/state"

// Source is where an environment's tabs come from.
type Source int

// The sources of tabs.
const (
	SourceNone     Source = iota // no tabs are wanted or there are none: one blank tab
	SourceProfile                // the profile's session files
	SourceDocument               // the document, or the session files if they have the same tabs
	SourceUnread                 // the session files; the tabs were not read over CDP
)

// SourceOf returns the source of a document's tabs. wanted says whether the caller wants
// them restored.
func SourceOf(doc state.Document, wanted bool) Source {
	switch {
	case !doc.Complete && doc.TabsByURL:
		return SourceNone // its session files are from an earlier version of Chrome
	case !doc.Complete:
		return SourceUnread
	case doc.TabsOnDisk && wanted:
		return SourceUnread
	case !wanted, len(doc.Tabs) == 0:
		return SourceNone
	case doc.Datadir == state.DatadirClean && !doc.TabsByURL:
		return SourceProfile
	default:
		return SourceDocument
	}
}
