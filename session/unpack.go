package session

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// unpacked is an environment that lies in a run directory, ready for a Chrome.
type unpacked struct {
	doc       state.Document
	overrides state.Overrides   // that its Chrome is to run with
	installed []state.Extension // that it is to have
	partial   bool              // it has only some origins
	notes     *RestoredNotes    // that came with it; nil: none
	files     state.Component   // the report's line of the profile
	// lost are the lines of extensions that are missing, left those of what the
	// create's selection leaves out.
	lost, left []state.Component
	// leave is called once, when the state is in the browser, or will not be.
	leave func()
}

// Restoring a state document takes many times its bytes of memory, so of the large
// ones, from largeState bytes on, only maxLarge are restored at once.
const (
	largeState = 2 << 20
	maxLarge   = 2
)

// unpack unpacks an archive into a run directory, as a create wants it. The caller
// calls leave of what it returns; after an error there is nothing to leave.
func (s *Service) unpack(ctx context.Context, dir *browser.Dir, r Create, saved snapshot.Snapshot, named []profiles.Extension) (u unpacked, err error) {
	u.leave = func() {}
	defer func() {
		if err != nil {
			u.leave()
		}
	}()
	inTurn := func(size int64) error {
		if size < largeState {
			return nil
		}
		leave, err := s.large.Take(ctx, saved.Location.Owner)
		if err == nil {
			u.leave = leave
		}
		return err
	}
	got, err := s.Vault.Unpack(ctx, saved, dir.Profile(), snapshot.UnpackOptions{
		Limits: s.cfg.Unpack, Accept: s.accepts, Keep: []string{state.FileName}, BeforeKept: inTurn})
	if err != nil {
		return u, err
	}
	if u.doc, err = documentOf(saved.ID, got.Kept[state.FileName]); err != nil {
		return u, err
	}
	if u.notes, err = notesIn(saved); err != nil {
		return u, err
	}
	u.doc, u.left = r.Origins.Document(u.doc)
	dropped, err := s.filter(ctx, dir.Profile(), r.Origins)
	if err != nil {
		return u, err
	}
	u.left = append(u.left, dropped...)
	if u.installed, u.lost, err = s.install(ctx, dir, u.doc.Extensions, named); err != nil {
		return u, err
	}
	u.overrides = r.Overrides.Over(u.doc.Overrides)
	u.partial = u.doc.Partial || !r.Origins.All()
	u.files = state.Component{Name: state.ComponentDatadir, Saved: got.Entries, Restored: got.Entries - len(got.Refused), Dropped: len(got.Refused)}
	if u.files.Dropped > 0 {
		u.files.Reason = report.FileNotAllowed.With("files that no profile may bring were left out")
	}
	return u, nil
}

// brought is what came up of it in a Chrome, and the lines of its report, with
// the Chrome's own.
func (u unpacked) brought(chrome Chrome, lines []state.Component) (upright, []state.Component) {
	files, lines := u.files, append(lines, u.left...)
	if tooNew(u.doc, chrome) {
		const reason = "it is in the profile, which a newer Chrome saved: it is not used"
		files.Restored, files.Dropped, files.Reason = 0, files.Saved, report.NewerProfile.With("a newer Chrome saved the profile: it is not used")
		lines = append(lines, state.LeftBehind(u.doc, reason)...)
	}
	up := upright{chrome: chrome, doc: u.doc, overrides: u.overrides, extensions: u.installed, partial: u.partial, notes: u.notes}
	return up, append(append([]state.Component{files}, u.lost...), lines...)
}
