package save

import (
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// sealedPart is the sealed part of a snapshot's document: whose environment it is, and which
// sites it has visited.
type sealedPart struct {
	UserID  string        `json:"user_id"`
	Tabs    []string      `json:"tabs"`    // URLs
	Origins []string      `json:"origins"` // storage keys and cookie domains
	Logins  []state.Login `json:"logins"`
}

// maxListedURL is the most bytes of a tab's URL in a document's sealed part; a data: URL
// may have megabytes. The state document has the whole URL.
const maxListedURL = 2048

// draft returns the snapshot to save: the files of the profile and the state document.
func draft(loc snapshot.Location, j Job, doc state.Document, files []browser.File, at time.Time) snapshot.Draft {
	entries := make([]snapshot.Entry, 0, len(files)+1)
	for _, f := range files {
		e := snapshot.Entry{Name: f.Name, Path: f.Path, Mode: f.Mode, InTail: f.InTail}
		if f.Data != nil {
			e.Path, e.Data = "", f.Data
		}
		entries = append(entries, e)
	}
	entries = append(entries, snapshot.Entry{Name: state.FileName, Data: profiles.JSON(doc), Mode: 0o600})
	p := sealedPart{UserID: j.Session.UserID, Tabs: []string{}, Origins: []string{}, Logins: state.Logins(doc, at)}
	for _, t := range doc.Tabs {
		p.Tabs = append(p.Tabs, t.URL[:min(len(t.URL), maxListedURL)])
	}
	for _, line := range state.CaptureLines(doc) {
		if line.Origin != "" {
			p.Origins = append(p.Origins, line.Origin)
		}
	}
	slices.Sort(p.Origins)
	p.Origins = slices.Compact(p.Origins) // an origin has many kinds of state
	mode := snapshot.Filesystem
	if j.Mode == Memory {
		mode = snapshot.Memory
	}
	return snapshot.Draft{
		ID: profiles.NewID(), Location: loc, Mode: mode, CreatedAt: at, Entries: entries,
		Facts: map[string]any{
			"chrome": doc.Chrome.Version, "engine": j.Session.Engine, "datadir": string(doc.Datadir),
			"state_schema": doc.SchemaVersion, "cookies": len(doc.Cookies), "tabs": len(doc.Tabs),
			"files": len(files), "bytes": browser.Size(files),
		},
		Private: profiles.JSON(p), AppData: agent.AppData(j.Notes),
	}
}
