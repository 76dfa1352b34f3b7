package restore

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// environment is one that lies in a run directory, ready for a Chrome.
type environment struct {
	doc       state.Document
	overrides state.Overrides   // that its Chrome is to run with
	installed []state.Extension // that it is to have
	partial   bool              // it has only some origins
	notes     *Notes            // that came with it; nil: none
	files     state.Component   // the report's line of the profile
	// lost are the lines of extensions that are missing, left those of what the
	// request's selection leaves out.
	lost, left []state.Component
	// leave is called once, when the state is in the browser, or will not be.
	leave func()
}

// unpack unpacks an archive into a run directory, as a request wants it. The caller
// calls leave of what it returns; after an error there is nothing to leave.
func (r *Restorer) unpack(ctx context.Context, dir *browser.Dir, q Request, saved snapshot.Snapshot) (_ environment, err error) {
	got, err := r.archives.Unpack(ctx, saved, dir.Profile())
	if err != nil {
		return environment{}, err
	}
	defer func() {
		if err != nil {
			got.Leave()
		}
	}()
	u := environment{notes: got.Notes, leave: got.Leave}
	u.doc, u.left = q.Origins.Document(got.Document)
	dropped, err := r.archives.Filter(ctx, dir.Profile(), q.Origins)
	if err != nil {
		return u, err
	}
	u.left = append(u.left, dropped...)
	if u.installed, u.lost, err = r.install(ctx, dir, u.doc.Extensions, q.Extensions); err != nil {
		return u, err
	}
	u.overrides = q.Overrides.Over(u.doc.Overrides)
	u.partial = u.doc.Partial || !q.Origins.All()
	u.files = state.Component{Name: state.ComponentDatadir, Saved: got.Entries, Restored: got.Entries - got.Refused, Dropped: got.Refused}
	if u.files.Dropped > 0 {
		u.files.Reason = report.FileNotAllowed.With("files that no profile may bring were left out")
	}
	return u, nil
}

// started is what came up of it in a Chrome. lines are the Chrome's own, to which
// those of the files come.
func (u environment) started(chrome browsers.Chrome, lines []state.Component) Files {
	files, lines := u.files, append(lines, u.left...)
	if tooNew(u.doc, chrome) {
		const reason = "it is in the profile, which a newer Chrome saved: it is not used"
		files.Restored, files.Dropped, files.Reason = 0, files.Saved, report.NewerProfile.With("a newer Chrome saved the profile: it is not used")
		lines = append(lines, state.LeftBehind(u.doc, reason)...)
	}
	return Files{
		Started:    Started{Chrome: chrome, Document: u.doc, Overrides: u.overrides, Extensions: u.installed, Partial: u.partial, Notes: u.notes},
		Components: append(append([]state.Component{files}, u.lost...), lines...),
	}
}
