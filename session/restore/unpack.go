package restore

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// environment is unpacked in a run directory, ready for a Chrome.
type environment struct {
	doc       state.Document
	overrides state.Overrides   // that its Chrome must run with
	installed []state.Extension // the extensions in the run directory
	partial   bool              // it has only some origins
	notes     *Notes            // restored with it; nil: none
	files     state.Component   // the report's line for the profile's files
	tail      Tail              // files that are still being unpacked; nil: none
	// lost are the lines of missing extensions. excluded are the lines of what the request's
	// selection leaves out.
	lost, excluded []state.Component
	// release must be called once, when the state is in the browser or will not be.
	release func()
}

// unpack unpacks an archive into a run directory for a request. tailLater says that the target
// may get the tail of the archive later. After success the caller must call release. If the
// environment does not get into a Chrome, it must also call stopTail. After an error it must
// call neither.
func (r *Restorer) unpack(ctx context.Context, dir *browser.Dir, q Request, saved snapshot.Snapshot, tailLater bool) (u environment, err error) {
	var into *TailFolder
	if tailLater && q.Origins.All() {
		into = &TailFolder{Path: filepath.Join(dir.Profile(), browser.Unpacking), Owner: snapshot.Owner{UID: dir.UID, GID: dir.UID}}
	}
	got, err := r.archives.Unpack(ctx, saved, dir.Profile(), into)
	if err != nil {
		return environment{}, err
	}
	u = environment{notes: got.Notes, release: got.Release, tail: got.Tail}
	defer func() {
		if err != nil {
			got.Release()
			u.stopTail()
		}
	}()
	u.doc, u.excluded = q.Origins.Document(got.Document)
	dropped, err := r.archives.Filter(ctx, dir.Profile(), q.Origins)
	if err != nil {
		return u, err
	}
	u.excluded = append(u.excluded, dropped...)
	if u.installed, u.lost, err = r.install(ctx, dir, u.doc.Extensions, q.Extensions); err != nil {
		return u, err
	}
	u.overrides = q.Overrides.WithDefaults(u.doc.Overrides)
	u.partial = u.doc.Partial || !q.Origins.All()
	u.files = state.Component{Name: state.ComponentDatadir, Saved: got.Entries, Restored: got.Entries - got.Refused, Dropped: got.Refused}
	if u.files.Dropped > 0 {
		u.files.Reason = report.FileNotAllowed.With("files that a profile must not contain were left out")
	}
	return u, nil
}

// stopTail ends the unpacking of the tail and waits for its end.
func (u environment) stopTail() {
	if u.tail != nil {
		u.tail.Stop()
	}
}

// heldTail is a tail whose snapshot cannot be removed until it has ended.
type heldTail struct {
	Tail
	release  func() // of the snapshot; may be called again
	log      *slog.Logger
	snapshot string
}

// Ended is documented at [browser.Tail]. An error is logged, because the create has been
// answered by then.
func (h heldTail) Ended(err error) {
	h.release()
	if err != nil && !errors.Is(err, context.Canceled) {
		h.log.Error("the caches of a restored environment could not be unpacked; its Chrome is ended, and the session is not saved", "snapshot", h.snapshot, "error", err)
	}
}

// started returns the restored Chrome with its report lines: lines, which Chrome
// reported, and those of the files.
func (u environment) started(chrome browsers.Chrome, lines []state.Component) Files {
	files, lines := u.files, append(lines, u.excluded...)
	if tooNew(u.doc, chrome) {
		const reason = "it is only in the profile, which a newer Chrome saved and which was not used"
		files.Restored, files.Dropped, files.Reason = 0, files.Saved, report.NewerProfile.With("a newer Chrome saved the profile, so it was not used")
		lines = append(lines, state.UnusedProfileLines(u.doc, reason)...)
	}
	return Files{
		StartResult: StartResult{Chrome: chrome, Document: u.doc, Overrides: u.overrides, Extensions: u.installed, Partial: u.partial, Notes: u.notes},
		Components:  append(append([]state.Component{files}, u.lost...), lines...),
	}
}
