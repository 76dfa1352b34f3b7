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
// A profile that Chrome closed has the localStorage of every origin, and as
// the site last set it: that is then the document's too, unless the document
// would be too large to be restored.
//
// A profile that cannot be counted is saved all the same, and the report says so.
func (s *Service) survey(ctx context.Context, j job, doc state.Document) state.Document {
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
	if _, damaged := found.Inventory.Damaged(state.ComponentLocalStorage); doc.Datadir == state.DatadirClean && !damaged {
		whole := doc
		whole.Local = found.Local
		whole.Missed = slices.DeleteFunc(slices.Clone(doc.Missed), func(m state.Missed) bool {
			return m.Component == state.ComponentLocalStorage
		})
		if len(encode(whole)) <= snapshot.MaxKept {
			return whole
		}
	}
	return doc
}
