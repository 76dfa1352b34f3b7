// Package baseline knows what an environment held before Chrome opened its profile and
// before any page of it ran. With that it decides whether the restore or the site caused
// a difference that is found later.
package baseline

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// inspectDeadline bounds the reading of a profile before Chrome opens it.
const inspectDeadline = 20 * time.Second

// Baseline is what a profile held before Chrome opened it, and what a restore has applied
// to it since. The zero value is the baseline of an empty profile.
type Baseline struct {
	Found inspect.Profile
	// ApplyResult says what was taken from the document, and how much of that is in the
	// profile already.
	profile.ApplyResult
	// Jar has the profile's cookies after Chrome had opened it and before any page ran.
	Jar []state.Cookie
	// localDB and sessionDB identify the databases of storage. They were undamaged, or
	// their damaged contents had been replaced. If Chrome keeps using such a database, it
	// has everything that the database held: it restores all of it or nothing.
	localDB, sessionDB inspect.Generation
	// refused has the storage keys whose localStorage could not be applied.
	refused map[string]bool
	// byScript: scripts applied all sessionStorage, and Chrome restored none. scripted
	// lists the tabs in which a script did that.
	byScript bool
	scripted []ScriptedTab
	tabs     []string // see NoteTabs
}

// New reads a profile that no Chrome has opened yet, and applies to it what is taken from
// the document. Changed lists the files that it wrote; the caller must give them to
// Chrome's user. If the profile's caches are still being unpacked, counted is the inventory
// that was made of them for the archive; otherwise it is nil.
func New(ctx context.Context, userDataDir string, doc state.Document, counted state.Inventory, now time.Time) (b Baseline, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectDeadline)
	defer cancel()
	if b.Found, err = inspect.Read(ctx, profile.Path(userDataDir)); err != nil {
		return b, err
	}
	if counted != nil {
		b.Found.Inventory = b.Found.Inventory.Replaced(counted, state.ComponentCacheStorage)
	}
	if b.ApplyResult, err = profile.Apply(ctx, userDataDir, doc, b.Found, now); err != nil {
		return b, err
	}
	b.NoteDatabases(userDataDir)
	return b, nil
}

// NoteDatabases records which storage databases a profile has now, before Chrome opens
// it.
func (b *Baseline) NoteDatabases(userDataDir string) {
	folder := profile.Path(userDataDir)
	b.localDB, b.sessionDB = inspect.GenerationOf(folder, inspect.LocalStorage), inspect.GenerationOf(folder, inspect.SessionStorage)
}

// WithoutUnwritten returns a document without the localStorage that Chrome had not
// written when it closed the profile.
func (b *Baseline) WithoutUnwritten(doc state.Document) state.Document {
	doc.Unwritten = b.Unwritten
	return doc.WithoutUnwritten()
}
