package save

import (
	"context"
	"time"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

const (
	// surveyDeadline limits how long a survey of a profile may take.
	surveyDeadline = 30 * time.Second
	// maxSurveys is how many profiles are read or filtered at once. Each needs several
	// times some tens of megabytes of memory.
	maxSurveys = 2
)

// Survey adds to the document what the profile holds on disk, as it is archived. If
// Chrome closed the profile, the document also gets all cookies and the localStorage of
// every origin from there: these include what unload handlers set. They are left out if
// the document would become too large for a restore.
//
// A profile that cannot be counted is saved all the same, and the report says so. problem
// is [DamagedCopy], [UnreadCopy] or "".
func (s *Saver) Survey(ctx context.Context, j Job, doc state.Document) (_ state.Document, problem string) {
	doc = doc.WithoutFindings() // an uploaded document must not set them
	if doc.Datadir == state.DatadirNone {
		return doc, ""
	}
	select {
	case s.surveySlots <- struct{}{}:
		defer func() { <-s.surveySlots }()
	case <-ctx.Done():
		doc.Inventory = uncounted("the profile could not be read in time")
		return doc, UnreadCopy
	}
	ctx, cancel := context.WithTimeout(ctx, surveyDeadline)
	defer cancel()
	found, err := s.cfg.Datadirs.Inspect(ctx, j.Dir.Profile(), doc)
	if err != nil {
		s.cfg.Log.Warn("a profile could not be surveyed; it is saved without counts", "session", j.Session.ID, "error", err)
		doc.Inventory = uncounted("the profile could not be read in time")
		return doc, UnreadCopy
	}
	if found.Damaged {
		problem = DamagedCopy
	}
	return firstFitting(found.Document, found.WithCounts, found.WithLosses), problem
}

// firstFitting returns the first of the documents that is small enough for a restore. The
// size of last was checked before. If only last fits, it says that it has no counts, if
// there is space for that.
func firstFitting(best, counted, last state.Document) state.Document {
	uncountedDoc := last
	uncountedDoc.Inventory = uncounted("the counts would not fit into the document")
	for _, doc := range []state.Document{best, counted, uncountedDoc} {
		if fitsDocument(doc, snapshot.MaxKept) == nil {
			return doc
		}
	}
	return last
}

func uncounted(why string) state.Inventory {
	return state.Inventory{{Component: state.ComponentDatadir, Uncounted: why}}
}
