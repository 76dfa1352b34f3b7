package restore

import "github.com/stasisd/stasis/state"

// Source is where an environment's tabs come from.
type Source int

// The sources of tabs.
const (
	SourceNone     Source = iota // no tabs are wanted or there are none: one blank tab
	SourceProfile                // the profile's session files
	SourceDocument               // the document; the session files where they say the same
	SourceUnread                 // the session files; nobody read which tabs there were
)

// SourceOf decides where the tabs of a document come from; wanted says whether its tabs
// are to come back.
func SourceOf(doc state.Document, wanted bool) Source {
	switch {
	case !doc.Complete && doc.TabsByURL:
		return SourceNone // its session files are of an earlier Chrome
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
