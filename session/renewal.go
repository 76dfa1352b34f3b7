package session

import (
	"cmp"
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// renewalName is the agent_name, and the text of the reason, of the record that has what scheduled
// checks saved, and keepRenewals how many of those stay besides the default.
const (
	renewalName  = "login_check"
	keepRenewals = 2
)

// renew makes a scheduled check: it opens the default whole, checks it, and saves
// it as the user's new default where it is logged in and something of the login
// has changed. Otherwise the default stays. One that is given up leaves nothing
// and is not told. The daemon's death leaves a run directory that no record names.
func (s *Service) renew(r *renewal) {
	outcome, err := s.renewal(r)
	if r.ctx.Err() != nil && !outcome.LoggedIn {
		return // somebody needs the environment, or the daemon stops
	}
	if err != nil {
		s.Log.Warn("a scheduled login check could not be made", "owner", profiles.OwnerOf(r.userID), "error", err)
		outcome = s.notAsked(err)
	}
	if outcome.Version == nil {
		outcome.SnapshotID, outcome.Version = &r.current.SnapshotID, &r.current.Version
	}
	if _, err := s.recordCheck(s.ctx, r.userID, r.snapshot, outcome); err != nil {
		s.Log.Error("the outcome of a scheduled login check could not be recorded", "owner", profiles.OwnerOf(r.userID), "error", err)
	}
}

// notAsked is the outcome of a check that has found nothing out.
func (s *Service) notAsked(err error) LoginOutcome {
	text := "a Chrome could not be asked: " + fault.CodeOf(err).Text()
	return LoginOutcome{CheckedAt: s.Now().UTC(), Conditions: []browser.Condition{}, Error: &text}
}

// renewal opens, checks and saves. The outcome names a version where a new one
// was made.
func (s *Service) renewal(r *renewal) (LoginOutcome, error) {
	release, err := s.snapshots.Hold(r.ctx, r.snapshot, "restored")
	if err != nil {
		return LoginOutcome{}, err
	}
	defer release()
	if d, err := s.Catalogue.Default(r.ctx, r.userID); err != nil || d.Version != r.current.Version {
		r.cancel() // it has moved since it was looked up
		return LoginOutcome{}, err
	}
	engine := cmp.Or(r.snapshot.Engine, browser.EngineChrome)
	if err := s.Browsers.Has(engine); err != nil {
		s.Meter.LoginChecked(CheckFailed)
		return LoginOutcome{}, err
	}
	if err := s.storable(r); err != nil {
		return s.notRenewed(r, "not opened, for what the site renews could not be saved", err), nil
	}
	up, err := s.restorer.FromFiles(r.ctx, restore.Request{Engine: engine, RestoreTabs: true}, r.snapshot)
	if err != nil {
		if r.ctx.Err() == nil {
			s.Meter.LoginChecked(CheckFailed)
		}
		return LoginOutcome{}, err
	}
	defer s.discard(s.ctx, up.Chrome)
	if err := r.open(); err != nil {
		return LoginOutcome{}, err
	}
	if why := notWhole(up); why != "" {
		return s.notRenewed(r, "not asked, for it did not come back whole and could not be saved", fault.New(fault.SaveFailed, "session.renewal", "%s", why)), nil
	}
	outcome, err := s.check(r.ctx, up.Chrome, r.check)
	if err != nil || !outcome.LoggedIn {
		return outcome, err
	}
	moved, err := s.saveRenewal(s.ctx, r, up.Started)
	if err != nil {
		s.Log.Warn("a default that is logged in could not be saved anew, and stays as it is", "owner", profiles.OwnerOf(r.userID), "error", err)
		text := "logged in, but what the site renewed could not be saved: " + fault.MessageOf(err)
		outcome.Error = &text
	}
	if moved != nil {
		outcome.SnapshotID, outcome.Version = &moved.SnapshotID, &moved.Version
	}
	return outcome, nil
}

// saveRenewal saves a checked browser as the user's default, from the version
// that it was opened from and no other. nil: nothing was saved, because nothing
// has changed, or another version has come.
func (s *Service) saveRenewal(ctx context.Context, r *renewal, up restore.Started) (_ *profiles.Default, err error) {
	did := SaveNotDone
	defer func() { s.Meter.Saved(SavedCheck, did) }()
	j := job{chrome: up.Chrome, dir: up.Chrome.Dir(), mode: SaveFilesystem, goesOn: true, auto: true, partial: up.Partial,
		notes: up.Notes, move: &profiles.Move{From: r.current.Version, Renewal: true}}
	if err := s.renewalRecord(ctx, r, &j); err != nil {
		return nil, err
	}
	var doc state.Document
	if err := s.tried(r, up.Chrome.Done(), func() (err error) {
		if doc, err = s.capture(ctx, j); err != nil {
			return err
		}
		if lost := newlyMissed(up.Document, doc); lost != "" {
			return fault.New(fault.SaveFailed, "session.renewal", "%s", lost)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if doc.Datadir, err = up.Chrome.Close(ctx); err != nil {
		return nil, err
	}
	if now, _ := s.survey(ctx, j, doc); !loginChanged(ctx, up.Document, now) {
		did = SaveUnchanged
		return nil, nil
	}
	files, err := s.Datadirs.Select(ctx, j.dir.Profile())
	if err != nil {
		return nil, err
	}
	var answer EndAnswer
	if err := s.tried(r, nil, func() (err error) {
		answer, _, err = s.keep(ctx, j, doc, files)
		return err
	}); err != nil {
		return nil, err
	}
	defer s.pruner.PruneCheckpoints(ctx, j.rec.ID, keepRenewals+1)
	if !answer.Default.Moved {
		row := profiles.Snapshot{ID: answer.Snapshot.ID, SessionID: j.rec.ID, UserID: r.userID}
		_, err := s.snapshots.Retire(ctx, row)
		did = SaveUnchanged // it is of no use to anybody
		return nil, err
	}
	did = SaveDone
	return &profiles.Default{UserID: r.userID, SnapshotID: answer.Snapshot.ID, SessionID: j.rec.ID, Version: answer.Default.Version}, nil
}

// renewalRecord finds the record that the snapshot goes to, or makes one: what
// scheduled checks make of one default is one record's, so that old ones go. It
// tells the webhook that the default's session told.
func (s *Service) renewalRecord(ctx context.Context, r *renewal, j *job) error {
	from, err := s.Catalogue.Session(ctx, r.snapshot.SessionID)
	if err != nil {
		return err
	}
	if from.Reason.Code == profiles.ReasonLoginCheck && !from.EndedAt.IsZero() {
		j.rec = from
		return nil
	}
	now := s.Now().UTC()
	j.arrived = &arrival{}
	j.rec = profiles.Session{ID: profiles.NewID(), UserID: r.userID, KeyID: from.KeyID, AgentName: renewalName, Goal: "keeps the login of the user's default alive",
		Engine: cmp.Or(r.snapshot.Engine, browser.EngineChrome), Status: profiles.StatusCompleted, Reason: profiles.ReasonLoginCheck.With(renewalName), CreatedAt: now, ExpiresAt: now, EndedAt: now,
		BaseSnapshotID: r.snapshot.ID, BaseVersion: r.current.Version, WebhookURL: from.WebhookURL}
	return nil
}
