package profile

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/state"
)

// Survey is what a save finds in the profile that it archives.
type Survey struct {
	// Document is complete. It says what the profile holds. For a profile that Chrome
	// closed, it also has the cookie jar and the localStorage of every origin as the
	// sites last set them.
	Document state.Document
	// WithLosses is the caller's document with what did not reach the disk. WithCounts also
	// has the amounts that the profile holds. Callers use them if Document is too large.
	WithCounts, WithLosses state.Document
	// Damaged reports that a store of the profile is damaged.
	Damaged bool
}

// Inspect surveys the profile in a user data directory, for a document of it. It fails if
// the profile cannot be read in time.
func Inspect(ctx context.Context, userDataDir string, doc state.Document) (Survey, error) {
	folder := Path(userDataDir)
	found, err := inspect.Read(ctx, folder)
	if err != nil {
		return Survey{}, err
	}
	v := Reconcile(Copies{Document: doc, Found: found})
	if doc.Datadir == state.DatadirClean {
		doc.Missed = slices.Clone(doc.Missed)
		findTabs(ctx, doc.Missed, folder)
		findLocal(doc.Missed, found.LocalStorage)
	}
	losses := v.withLosses(doc)
	counts := losses
	counts.Inventory = found.Inventory
	return Survey{Document: v.withDisk(counts, found), WithCounts: counts, WithLosses: losses,
		Damaged: slices.ContainsFunc(found.Inventory, func(h state.Holding) bool { return h.Damage != "" })}, nil
}

// Compare returns the document of a Chrome that was closed and will be reopened on the
// same profile, with what did not reach the disk. If the disk cannot be read, it returns
// the document unchanged; the new Chrome's report shows what was restored.
func Compare(ctx context.Context, userDataDir string, doc state.Document) state.Document {
	root, err := os.OpenRoot(Path(userDataDir))
	if err != nil {
		return doc
	}
	defer func() { _ = root.Close() }() // only a handle
	var found inspect.Profile
	found.LocalStorage, _ = localstorage.Read(ctx, root.FS()) // an oversized database gives only what can be compared
	found.SessionStorage, _ = sessionstorage.Read(ctx, root.FS())
	return Reconcile(Copies{Document: doc, Found: found}).withLosses(doc)
}

// withLosses returns a document with what did not reach the disk.
func (v Verdict) withLosses(doc state.Document) state.Document {
	doc.Unwritten, doc.Unstored = v.Unwritten, v.Unstored
	for _, component := range v.Truncated {
		doc.Missed = append(slices.Clone(doc.Missed), state.Missed{Component: component,
			Reason: "Chrome ended during its last write, which is lost; the origin of that write is unknown"})
	}
	return doc
}

// withDisk returns a document with what was found on disk, for the parts whose copy on
// disk is final.
func (v Verdict) withDisk(doc state.Document, found inspect.Profile) state.Document {
	if doc.Datadir != state.DatadirClean {
		return doc
	}
	whole := doc
	if v.Jar != nil {
		whole.FromDisk = append(whole.FromDisk, state.ComponentCookies)
		whole.Cookies = v.Jar
	}
	if _, damaged := found.Inventory.Damaged(state.ComponentLocalStorage); !damaged && found.LocalStorage.Areas != nil {
		whole.FromDisk = append(whole.FromDisk, state.ComponentLocalStorage)
		whole.Local = found.LocalStorage.Areas
		for _, area := range doc.Local {
			if v.Local[area.StorageKey] == FromDocument {
				whole.Local = replaced(whole.Local, area)
			}
		}
		whole.Missed = slices.DeleteFunc(slices.Clone(doc.Missed), func(m state.Missed) bool {
			return m.Component == state.ComponentLocalStorage && m.Origin != "" && (m.InProfile == nil || *m.InProfile > 0)
		})
	}
	return whole
}

// replaced returns the areas with area in place of the one with the same storage key.
func replaced(areas []state.Area, area state.Area) []state.Area {
	out := slices.DeleteFunc(slices.Clone(areas), func(a state.Area) bool { return a.StorageKey == area.StorageKey })
	at, _ := slices.BinarySearchFunc(out, area, func(a, b state.Area) int { return strings.Compare(a.StorageKey, b.StorageKey) })
	return slices.Insert(out, at, area)
}
