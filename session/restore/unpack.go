package restore

import (
	"context"
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
	rest      browser.Rest      // files that are still being unpacked; nil: none
	// lost are the lines of missing extensions. left are the lines of what the request's
	// selection leaves out.
	lost, excluded []state.Component
	// leave must be called once, when the state is in the browser or will not be.
	release func()
}

// unpack unpacks an archive into a run directory for a request. later says that Chrome can be
// given a part of the files later. After success the caller must call release of the result,
// and stopRest if the environment does not get into a Chrome; after an error it must not.
func (r *Restorer) unpack(ctx context.Context, dir *browser.Dir, q Request, saved snapshot.Snapshot, later bool) (u environment, err error) {
	var rest *Later
	if later && q.Origins.All() {
		rest = &Later{Folder: filepath.Join(dir.Profile(), browser.Unpacking), Owner: snapshot.Owner{UID: dir.UID, GID: dir.UID}}
	}
	got, err := r.archives.Unpack(ctx, saved, dir.Profile(), rest)
	if err != nil {
		return environment{}, err
	}
	u = environment{notes: got.Notes, release: got.Release}
	if got.Rest != nil {
		u.rest = loggedRest{got.Rest, r, saved.ID}
	}
	defer func() {
		if err != nil {
			got.Release()
			u.stopRest()
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

// loggedRest is a rest whose failure is logged: the session that it belongs to has been
// answered by then.
type loggedRest struct {
	browser.Rest
	r        *Restorer
	snapshot string
}

// Wait is documented at [browser.Rest].
func (l loggedRest) Wait(ctx context.Context) error {
	err := l.Rest.Wait(ctx)
	if err != nil && ctx.Err() == nil {
		l.r.log.Error("the caches of a restored environment could not be unpacked; its Chrome is ended, and the session is not saved", "snapshot", l.snapshot, "error", err)
	}
	return err
}

// stopRest ends the unpacking of the rest and waits for its end.
func (u environment) stopRest() {
	if u.rest == nil {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = u.rest.Wait(ended) // the environment is not used
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
