package save

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
)

// Keep makes a snapshot of files and a state document. It filters them, surveys the
// profile, archives, stores and verifies, and only then commits. One transaction records
// the snapshot, the move of the default and, unless the session continues, its end. The
// answer is that of an end.
//
// problem is what is wrong with the files: [DamagedCopy], [UnreadCopy] or "". A
// checkpoint with a problem moves no default. After an error nothing is stored.
func (s *Saver) Keep(ctx context.Context, j Job, doc state.Document, files []browser.File) (answer EndAnswer, problem string, err error) {
	loc := library.LocationOf(j.Session.UserID, j.Session.ID)
	scratch, files, lost, err := s.selectFiles(ctx, j, files)
	if err != nil {
		return EndAnswer{}, "", err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // leftovers are removed with the run directory
	doc.Partial = j.Partial || !j.Origins.All()
	if !j.Examined {
		if doc, files, problem, err = s.Examine(ctx, j, doc, files); err != nil {
			return EndAnswer{}, "", err
		}
	}
	doc, excluded := j.Origins.Document(doc)
	j.excluded = append(excluded, lost...)
	if j.Continues {
		j = j.withProblem(problem)
	}
	if j.Notes == nil {
		if j.Notes, err = agent.NotesToSave(ctx, s.cfg.Records, j.Session); err != nil {
			return EndAnswer{}, "", err
		}
	}
	if j.moves() && j.Hold != nil {
		if j.files, err = j.Hold(j.Session.ID, j.Dir); err != nil {
			return EndAnswer{}, "", err
		}
	}
	saved, err := s.cfg.Archives.Save(ctx, draft(loc, j, doc, files, s.cfg.Now().UTC()))
	if err != nil {
		return EndAnswer{}, "", err
	}
	report := newReport(j, doc, s.cfg.Now())
	report.Damaged = j.Continues && problem == DamagedCopy
	row := profiles.Snapshot{
		ID: saved.ID, SessionID: j.Session.ID, UserID: j.Session.UserID, Mode: string(saved.Mode), Rescue: j.Rescue, Auto: j.Auto, Label: j.Label,
		CreatedAt: saved.CreatedAt, ArchiveID: saved.Archive.ID, SizeBytes: saved.Archive.StoredSize,
		Datadir: string(doc.Datadir), Chrome: doc.Chrome.Version, Engine: j.Session.Engine, Report: profiles.JSON(report), Extensions: pinnedExtensions(doc),
	}
	if j.Rescue {
		row.ExpiresAt = saved.CreatedAt.Add(s.cfg.RescueTTL)
	}
	commit := profiles.Commit{Snapshot: row, Move: j.Move, Admit: j.Admit, Check: j.Check, Notices: s.cfg.Notices.For(events.HookSaved)}
	switch {
	case j.Import != nil:
		commit.Session = &j.Session
	case j.AfterEnd: // webhooks know of the end
		commit.End = j.end(row, j.Session.EndedAt)
	case j.moves(): // webhooks learn that it continues
		commit.End = j.end(row, s.cfg.Now().UTC())
	case !j.Continues:
		commit.Notices = s.cfg.Notices.For(append([]string{events.HookSaved}, events.EndEvents(j.CrashUnreported)...)...)
		commit.End = j.end(row, s.cfg.Now().UTC())
	}
	moved, err := s.cfg.Records.Commit(ctx, commit)
	s.cfg.Notices.Wake()
	if errors.Is(err, profiles.ErrOutcomeUnknown) {
		// The record may name the archive, so it stays. If none does, it is an orphan.
		s.cfg.Log.Error("whether a snapshot was committed is unknown; if the catalogue does not list it, stop the daemon and run `stasis store check --remove-orphans`", "snapshot", saved.ID, "error", err)
		return EndAnswer{}, "", err
	}
	if err != nil {
		// The archive was not committed, so it must not stay. If it cannot be removed
		// now, it is an orphan that no record names.
		if derr := s.cfg.Archives.Delete(context.WithoutCancel(ctx), loc, saved.ID, s.cfg.Records.ArchiveInUse); derr != nil {
			s.cfg.Log.Error("the archive of a failed save could not be removed from the store; stop the daemon and run `stasis store check --remove-orphans`", "snapshot", saved.ID, "error", derr)
		}
		if fault.Is(err, fault.CatalogueUnavailable) { // then nobody knows whether another snapshot has the same archive, so it stays
			s.cfg.Log.Error("the catalogue could not be reached, so the archive of a failed save may remain in the store; to remove it, stop the daemon and run `stasis store check --remove-orphans`", "snapshot", saved.ID)
		}
		return EndAnswer{}, "", err
	}
	s.cfg.Archives.MarkCommitted(saved)
	if moved.Moved {
		s.cfg.Ready.DefaultChanged()
	}
	return endAnswer(row, j, moved), problem, nil
}

// Examine does what needs the contents of a profile's files before they are archived. It
// leaves out extensions whose files have changed and what Stasis wrote for its own use, and
// adds to the document what the profile holds; see [Saver.Survey].
func (s *Saver) Examine(ctx context.Context, j Job, doc state.Document, files []browser.File) (_ state.Document, kept []browser.File, problem string, err error) {
	if doc, files, err = withoutChangedExtensions(ctx, j, doc, files); err != nil {
		return doc, nil, "", err
	}
	if files, err = s.cfg.Datadirs.Unprepare(files); err != nil {
		return doc, nil, "", err
	}
	doc, problem = s.Survey(ctx, j, doc)
	return doc, files, problem, nil
}

// end returns the end of the job's session with a snapshot.
func (j Job) end(row profiles.Snapshot, at time.Time) *profiles.End {
	return &profiles.End{SessionID: j.Session.ID, Status: j.Status, Reason: j.Reason, EndedAt: at,
		Outcome: func(m profiles.MoveResult) (json.RawMessage, error) {
			if j.moves() {
				return profiles.JSON(Moved{endAnswer(row, j, m), j.Paused, j.files}), nil
			}
			return profiles.JSON(endAnswer(row, j, m)), nil
		}}
}

// EndSession ends a session without a snapshot and notifies webhooks of the end. If crash
// is set, it also notifies them of the crash.
func (s *Saver) EndSession(ctx context.Context, e profiles.End, crash bool) error {
	e.Notices = s.cfg.Notices.For(events.EndEvents(crash)...)
	err := s.cfg.Records.EndSession(ctx, e)
	s.cfg.Notices.Wake()
	return err
}
