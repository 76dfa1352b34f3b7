// Package baseline knows what an environment held before Chrome opened its profile
// and before any page of it ran. It decides who made a difference that is found later:
// the restore or the site.
package baseline

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// inspectDeadline bounds the reading of a profile before Chrome has it.
const inspectDeadline = 20 * time.Second

// Baseline is what one profile held before Chrome opened it, and what a restore has
// applied to it since. The zero value is that of an empty profile.
type Baseline struct {
	Found inspect.Profile
	// Applied is what was taken from the document, and what of that is in the
	// profile already.
	profile.Applied
	// Jar is what the profile's cookies were when Chrome had it and no page had run.
	Jar []state.Cookie
	// localDB and sessionDB are the databases that hold the storage: whole, or
	// what was damaged in them had been replaced. What such a database held Chrome
	// had, as long as it goes on with it: it brings back all of one or nothing.
	localDB, sessionDB inspect.Generation
	// refused are the storage keys whose localStorage was to be applied and could
	// not be.
	refused map[string]bool
	// byScript: a script applied all sessionStorage, Chrome brought back none.
	// scripted are the tabs in which a script did that.
	byScript bool
	scripted []ScriptedTab
}

// New reads a profile that no Chrome has opened yet, and applies to it what is taken
// from the document. The files that it wrote are named in Changed; handing them to
// Chrome's user is the caller's.
func New(ctx context.Context, userDataDir string, doc state.Document, now time.Time) (b Baseline, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectDeadline)
	defer cancel()
	if b.Found, err = inspect.Read(ctx, profile.Path(userDataDir)); err != nil {
		return b, err
	}
	if b.Applied, err = profile.Apply(ctx, userDataDir, doc, b.Found, now); err != nil {
		return b, err
	}
	b.NoteDatabases(userDataDir)
	return b, nil
}

// NoteDatabases notes which databases of storage a profile has now, before Chrome
// opens it.
func (b *Baseline) NoteDatabases(userDataDir string) {
	folder := profile.Path(userDataDir)
	b.localDB, b.sessionDB = inspect.GenerationOf(folder, inspect.LocalStorage), inspect.GenerationOf(folder, inspect.SessionStorage)
}

// Written is a document without the localStorage that Chrome had not written when it
// closed the profile.
func (b *Baseline) Written(doc state.Document) state.Document {
	doc.Unwritten = b.Unwritten
	return doc.Written()
}
