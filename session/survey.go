package session

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

const (
	// surveyDeadline bounds the counting of a profile that is being saved.
	surveyDeadline = 30 * time.Second
	// maxSurveys bounds how many are counted, or gone through for a selection, at
	// once: each keeps up to
	// leveldb.MaxBytes of storage in memory, more than once.
	maxSurveys = 2
)

// survey adds to the document what the profile holds on disk as it is archived.
// Of a profile that Chrome closed the whole jar and the localStorage of every
// origin are read, as the sites last set them, unload handlers and all: they are
// then the document's too, unless it would be too large to be restored.
//
// A profile that cannot be counted is saved all the same, and the report says so.
// flaw is what is wrong with it, or that this is not known.
func (s *Service) survey(ctx context.Context, j job, doc state.Document) (_ state.Document, flaw string) {
	doc.FromDisk, doc.Unwritten, doc.Unstored = nil, nil, nil // an uploaded document's word is not taken for it
	doc.Missed = slices.Clone(doc.Missed)
	for i := range doc.Missed {
		doc.Missed[i].InProfile = nil // nor for this
	}
	if doc.Datadir == state.DatadirNone {
		return doc, ""
	}
	select {
	case s.surveys <- struct{}{}:
		defer func() { <-s.surveys }()
	case <-ctx.Done():
		doc.Inventory = uncounted("there was no time to read it")
		return doc, unreadCopy
	}
	ctx, cancel := context.WithTimeout(ctx, s.surveyFor)
	defer cancel()
	folder := profile.Path(j.dir.Profile())
	found, err := inspect.Read(ctx, folder)
	if err != nil {
		s.Log.Warn("a profile could not be counted", "session", j.rec.ID, "error", err)
		doc.Inventory = uncounted("it could not be read in time")
		return doc, unreadCopy
	}
	switch {
	case doc.Datadir == state.DatadirClean:
		lookFor(ctx, doc.Missed, folder)
		lookForLocal(doc.Missed, found.LocalStorage)
		doc = unwritten(doc, found.LocalStorage)
		doc = unstored(doc, found.SessionStorage)
	case doc.Datadir == state.DatadirCrash && !doc.Complete:
		if found.LocalStorage.Cut {
			doc = cutOff(doc, state.ComponentLocalStorage)
		}
		if found.SessionStorage.Cut {
			doc = cutOff(doc, state.ComponentSessionStorage)
		}
	}
	return smallest(withDisk(doc, found), counted(doc, found), doc), flawOf(found)
}

// smallest is the first of some documents, the best first, that a restore takes.
// The last one was checked before, and says that it has no counts where there
// is room to say so.
func smallest(best, counted, last state.Document) state.Document {
	told := last
	told.Inventory = uncounted("its counts would not fit into the document")
	for _, doc := range []state.Document{best, counted, told} {
		if fitsDocument(doc, snapshot.MaxKept) == nil {
			return doc
		}
	}
	return last
}

func uncounted(why string) state.Inventory {
	return state.Inventory{{Component: state.ComponentDatadir, Uncounted: why}}
}

// counted adds to the document how much was found on disk.
func counted(doc state.Document, found inspect.Profile) state.Document {
	doc.Inventory = found.Inventory
	return doc
}

// withDisk adds to the document what was found on disk, where that is the last
// word.
func withDisk(doc state.Document, found inspect.Profile) state.Document {
	doc = counted(doc, found)
	if doc.Datadir != state.DatadirClean {
		return doc
	}
	whole := doc
	if found.Cookies != nil {
		whole.FromDisk = append(whole.FromDisk, state.ComponentCookies)
		whole.Cookies = found.Cookies
		for _, c := range doc.Cookies {
			// What Chrome keeps in memory only.
			if c.Opaque || c.Session && doc.Chrome.Engine == browser.EngineShell {
				whole.Cookies = append(whole.Cookies, c)
			}
		}
	}
	if _, damaged := found.Inventory.Damaged(state.ComponentLocalStorage); !damaged && found.LocalStorage.Areas != nil {
		whole.FromDisk = append(whole.FromDisk, state.ComponentLocalStorage)
		whole.Local = found.LocalStorage.Areas
		for _, area := range doc.Local {
			if slices.Contains(doc.Unwritten, area.StorageKey) {
				whole.Local = replaced(whole.Local, area)
			}
		}
		whole.Missed = slices.DeleteFunc(slices.Clone(doc.Missed), func(m state.Missed) bool {
			return m.Component == state.ComponentLocalStorage && m.Origin != "" && (m.InProfile == nil || *m.InProfile > 0)
		})
	}
	return whole
}

// replaced has an area in the place of the one of the same storage key.
func replaced(areas []state.Area, area state.Area) []state.Area {
	out := slices.DeleteFunc(slices.Clone(areas), func(a state.Area) bool { return a.StorageKey == area.StorageKey })
	at, _ := slices.BinarySearchFunc(out, area, func(a, b state.Area) int { return strings.Compare(a.StorageKey, b.StorageKey) })
	return slices.Insert(out, at, area)
}

// unwritten notes which of the localStorage that was read did not reach the
// disk: Chrome may end well before it has written what pages stored last. A
// write that is cut off and was none of those is named as missed.
func unwritten(doc state.Document, found localstorage.Contents) state.Document {
	doc.Unwritten = found.Unwritten(doc.Local, doc.CapturedAt)
	if found.Cut && len(doc.Unwritten) == 0 {
		doc = cutOff(doc, state.ComponentLocalStorage)
	}
	return doc
}

// unstored notes what of the tabs' sessionStorage did not reach the disk. Tabs that
// are opened by URL are given theirs from the document.
func unstored(doc state.Document, found sessionstorage.Contents) state.Document {
	if doc.TabsByURL {
		return doc
	}
	doc.Unstored = found.Lost(doc.Tabs)
	if found.Cut && len(doc.Unstored) == 0 {
		doc = cutOff(doc, state.ComponentSessionStorage)
	}
	return doc
}

// cutOff names the write of localStorage or sessionStorage that Chrome did not end.
func cutOff(doc state.Document, component string) state.Document {
	doc.Missed = append(slices.Clone(doc.Missed), state.Missed{Component: component,
		Reason: "Chrome ended in the middle of its last write, which is lost; which origin's it was is not known"})
	return doc
}

// compared is the document of a Chrome that was closed and is to be opened again
// on the same profile, with what of it did not reach the disk. Where that cannot
// be read, the new Chrome's report says what it brought back.
func (s *Service) compared(ctx context.Context, j job, doc state.Document) state.Document {
	root, err := os.OpenRoot(profile.Path(j.dir.Profile()))
	if err != nil {
		return doc
	}
	defer func() { _ = root.Close() }()           // only a handle
	found, _ := localstorage.Read(ctx, root.FS()) // of one with too much in it, what can be compared
	tabs, _ := sessionstorage.Read(ctx, root.FS())
	return unstored(unwritten(doc, found), tabs)
}
