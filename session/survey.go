package session

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser/datadir"
	"github.com/stasisd/stasis/browser/inventory"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// surveyDeadline bounds the counting of a profile that is being saved.
const surveyDeadline = 30 * time.Second

// survey adds to the document what the profile holds on disk as it is archived.
// Of a profile that Chrome closed the whole jar and the localStorage of every
// origin are read, as the sites last set them, unload handlers and all: they are
// then the document's too, unless it would be too large to be restored.
//
// A profile that cannot be counted is saved all the same, and the report says so.
func (s *Service) survey(ctx context.Context, j job, doc state.Document) state.Document {
	doc.FromDisk = nil // an uploaded document's word is not taken for it
	if doc.Datadir == state.DatadirNone {
		return doc
	}
	ctx, cancel := context.WithTimeout(ctx, surveyDeadline)
	defer cancel()
	found, err := inventory.Read(ctx, filepath.Join(j.dir.Profile(), datadir.Profile))
	if err != nil {
		s.Log.Warn("a profile could not be counted", "session", j.rec.ID, "error", err)
		doc.Inventory = state.Inventory{{Component: state.ComponentDatadir, Uncounted: "it could not be read in time"}}
		return doc
	}
	doc.Inventory = found.Inventory
	if doc.Datadir != state.DatadirClean {
		return doc
	}
	whole := doc
	if found.Cookies != nil {
		whole.FromDisk = append(whole.FromDisk, state.ComponentCookies)
		whole.Cookies = found.Cookies
		for _, c := range doc.Cookies {
			if c.Opaque { // Chrome keeps it in memory only
				whole.Cookies = append(whole.Cookies, c)
			}
		}
	}
	if _, damaged := found.Inventory.Damaged(state.ComponentLocalStorage); !damaged && found.Local != nil {
		whole.FromDisk = append(whole.FromDisk, state.ComponentLocalStorage)
		whole.Local = found.Local
		whole.Missed = slices.DeleteFunc(slices.Clone(doc.Missed), func(m state.Missed) bool {
			return m.Component == state.ComponentLocalStorage
		})
	}
	if len(encode(whole)) > snapshot.MaxKept {
		return doc
	}
	return whole
}
