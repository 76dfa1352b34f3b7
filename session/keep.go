package session

import (
	"context"
	"os"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
)

// keep archives, stores and verifies the environment, and only then commits:
// the snapshot, the default's move and the session's end, if it ends, in one
// transaction. flaw is what is wrong with the files; a checkpoint with one moves no
// default.
func (s *Service) keep(ctx context.Context, j job, doc state.Document, files []browser.File) (answer EndAnswer, flaw string, err error) {
	loc := library.LocationOf(j.rec.UserID, j.rec.ID)
	scratch, files, lost, err := s.selected(ctx, j, files)
	if err != nil {
		return EndAnswer{}, "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // what stays goes with the run directory
	if doc, files, err = pinned(ctx, j, doc, files); err != nil {
		return EndAnswer{}, "", err
	}
	if files, err = s.Datadirs.Unprepare(files); err != nil {
		return EndAnswer{}, "", err
	}
	doc.Partial = j.partial || !j.origins.All()
	doc, flaw = s.survey(ctx, j, doc)
	doc, left := j.origins.Document(doc)
	j.left = append(left, lost...)
	if j.goesOn {
		j = j.flawed(flaw)
	}
	if j.notes == nil {
		if j.notes, err = agent.NotesToSave(ctx, s.Catalogue, j.rec); err != nil {
			return EndAnswer{}, "", err
		}
	}
	saved, err := s.Vault.Save(ctx, draft(loc, j, doc, files, s.Now().UTC()))
	if err != nil {
		return EndAnswer{}, "", err
	}
	report := captured(j, doc, s.Now())
	report.Damaged = j.goesOn && flaw == damagedCopy
	row := profiles.Snapshot{
		ID: saved.ID, SessionID: j.rec.ID, UserID: j.rec.UserID, Mode: string(saved.Mode), Rescue: j.rescue, Auto: j.auto, Label: j.label,
		CreatedAt: saved.CreatedAt, ArchiveID: saved.Archive.ID, SizeBytes: saved.Archive.StoredSize,
		Datadir: string(doc.Datadir), Chrome: doc.Chrome.Version, Engine: j.rec.Engine, Report: encode(report), Extensions: pins(doc),
	}
	if j.rescue {
		row.ExpiresAt = saved.CreatedAt.Add(s.cfg.RescueTTL)
	}
	commit := profiles.Commit{Snapshot: row, Move: j.move, Notices: s.Notices.For(events.HookSaved)}
	switch {
	case j.arrived != nil:
		commit.Session = &j.rec
	case !j.goesOn:
		commit.Notices = s.Notices.For(append([]string{events.HookSaved}, events.EndEvents(j.untold)...)...)
		commit.End = &profiles.End{SessionID: j.rec.ID, Status: j.status, Reason: j.reason, EndedAt: s.Now().UTC(),
			Outcome: func(m profiles.Moved) (jsonRaw, error) { return encode(endAnswer(row, j, m)), nil }}
	}
	moved, err := s.Catalogue.Commit(ctx, commit)
	s.Notices.Wake()
	if err != nil {
		// Not committed: as if it had never been. What cannot be removed now is
		// an orphan that no record names.
		if derr := s.Vault.Delete(context.WithoutCancel(ctx), loc, saved.ID, s.Catalogue.ArchiveInUse); derr != nil {
			s.Log.Error("an uncommitted snapshot could not be removed", "snapshot", saved.ID, "error", derr)
		}
		return EndAnswer{}, "", err
	}
	s.Vault.Settled(saved)
	if moved.Moved {
		s.capacity.DefaultChanged()
	}
	return endAnswer(row, j, moved), flaw, nil
}
