package renewal

import (
	"cmp"
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// renewalName is the agent_name, and the text of the reason, of the session record that
// scheduled checks save to. keepRenewals is how many of its snapshots are kept besides
// the default.
const (
	renewalName  = "login_check"
	keepRenewals = 2
)

// renew makes a scheduled check: it opens the default with its tabs and checks the login.
// If the user is logged in and the login has changed, it saves the environment as the
// user's new default. Otherwise the default stays. A check that is abandoned leaves
// nothing and is not recorded. If the daemon dies, a run directory without a record
// remains; the next start removes it.
func (k *Renewals) renew(r *Renewal) {
	outcome, err := k.renewal(r)
	if r.ctx.Err() != nil && !outcome.LoggedIn {
		return // a create needs the environment, or the daemon stops
	}
	if err != nil {
		k.cfg.Log.Warn("a scheduled login check failed; the default does not change; trying again later", "owner", profiles.OwnerOf(r.userID), "error", err)
		outcome = login.NotChecked(k.cfg.Now(), err)
	}
	if outcome.Version == nil {
		outcome.SnapshotID, outcome.Version = &r.current.SnapshotID, &r.current.Version
	}
	k.cfg.Checked(r.userID, *outcome.SnapshotID, outcome)
	if _, err := k.cfg.Checker.Record(k.workCtx, r.userID, r.snapshot, outcome); err != nil {
		k.cfg.Log.Error("the outcome of a scheduled login check could not be recorded", "owner", profiles.OwnerOf(r.userID), "error", err)
	}
}

// renewal opens, checks and saves. The outcome names a version only if there is a new
// one.
func (k *Renewals) renewal(r *Renewal) (login.Outcome, error) {
	release, err := k.cfg.Snapshots.Hold(r.ctx, r.snapshot, "restored")
	if err != nil {
		return login.Outcome{}, err
	}
	defer release()
	if d, err := k.cfg.Records.Default(r.ctx, r.userID); err != nil || d.Version != r.current.Version {
		r.cancel() // the default has moved since it was looked up
		return login.Outcome{}, err
	}
	engine := cmp.Or(r.snapshot.Engine, browser.EngineChrome)
	if err := k.cfg.Engines.Has(engine); err != nil {
		k.cfg.Meter.LoginChecked(login.Failed)
		return login.Outcome{}, err
	}
	if err := k.checkStore(r); err != nil {
		return k.notRenewed(r, "the check was skipped: the store cannot take a snapshot now, so a login that the site renews would be lost", err), nil
	}
	up, err := k.cfg.Restorer.FromFiles(r.ctx, restore.Request{Engine: engine, RestoreTabs: true, Egress: r.egress}, r.snapshot)
	if err != nil {
		if r.ctx.Err() == nil {
			k.cfg.Meter.LoginChecked(login.Failed)
		}
		return login.Outcome{}, err
	}
	defer browsers.Discard(k.workCtx, up.Chrome, k.cfg.Log)
	if err := r.markOpened(); err != nil {
		return login.Outcome{}, err
	}
	if why := missingParts(up); why != "" {
		return k.notRenewed(r, "the check was skipped: the default could not be restored completely, so a renewed login could not be saved", fault.New(fault.SaveFailed, "session.renewal", "%s", why)), nil
	}
	outcome, err := k.cfg.Checker.Check(r.ctx, up.Chrome, r.check)
	if err != nil || !outcome.LoggedIn {
		return outcome, err
	}
	moved, err := k.saveRenewal(k.workCtx, r, up.StartResult)
	if err != nil {
		k.cfg.Log.Warn("a scheduled check found the default logged in but could not save it; the default does not change", "owner", profiles.OwnerOf(r.userID), "error", err)
		text := "logged in, but the renewed login could not be saved: " + fault.MessageOf(err)
		outcome.Error = &text
	}
	if moved != nil {
		outcome.SnapshotID, outcome.Version = &moved.SnapshotID, &moved.Version
	}
	return outcome, nil
}

// saveRenewal saves a checked Chrome as the user's default, if the default still has the
// version that was opened. It returns nil if nothing was saved, because nothing has
// changed or the default has moved.
func (k *Renewals) saveRenewal(ctx context.Context, r *Renewal, up restore.StartResult) (_ *profiles.Default, err error) {
	result := save.Failed
	defer func() { k.cfg.Meter.Saved(save.ForLoginCheck, result) }()
	j := save.Job{Chrome: up.Chrome, Dir: up.Chrome.Dir(), Mode: save.Filesystem, Continues: true, Auto: true, Partial: up.Partial,
		Notes: up.Notes, Move: &profiles.Move{From: r.current.Version, Renewal: true}}
	if err := k.renewalRecord(ctx, r, &j); err != nil {
		return nil, err
	}
	var doc state.Document
	if err := k.retried(r, up.Chrome.Done(), func() (err error) {
		if doc, err = k.cfg.Saver.Capture(ctx, j); err != nil {
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
	if now, _ := k.cfg.Saver.Survey(ctx, j, doc); !loginChanged(ctx, up.Document, now) {
		result = save.Unchanged
		return nil, nil
	}
	files, err := k.cfg.Datadirs.Select(ctx, j.Dir.Profile())
	if err != nil {
		return nil, err
	}
	var answer save.EndAnswer
	if err := k.retried(r, nil, func() (err error) {
		answer, _, err = k.cfg.Saver.Keep(ctx, j, doc, files)
		return err
	}); err != nil {
		return nil, err
	}
	defer k.cfg.Pruner.PruneCheckpoints(ctx, j.Session.ID, keepRenewals+1)
	if !answer.Default.Moved {
		row := profiles.Snapshot{ID: answer.Snapshot.ID, SessionID: j.Session.ID, UserID: r.userID}
		_, err := k.cfg.Snapshots.Retire(ctx, row)
		result = save.Unchanged // the default has moved, so the snapshot is of no use
		return nil, err
	}
	result = save.Saved
	return &profiles.Default{UserID: r.userID, SnapshotID: answer.Snapshot.ID, SessionID: j.Session.ID, Version: answer.Default.Version}, nil
}

// renewalRecord finds or makes the session record of the snapshot. All scheduled checks
// of one default share a record, so that old snapshots can be removed. Its webhook is
// that of the session that the default came from.
func (k *Renewals) renewalRecord(ctx context.Context, r *Renewal, j *save.Job) error {
	from, err := k.cfg.Records.Session(ctx, r.snapshot.SessionID)
	if err != nil {
		return err
	}
	if from.Reason.Code == profiles.ReasonLoginCheck && !from.EndedAt.IsZero() {
		j.Session = from
		return nil
	}
	now := k.cfg.Now().UTC()
	j.Import = &save.Import{}
	j.Session = profiles.Session{ID: profiles.NewID(), UserID: r.userID, KeyID: from.KeyID, AgentName: renewalName, Goal: "keeps the login of the user's default alive",
		Engine: cmp.Or(r.snapshot.Engine, browser.EngineChrome), Status: profiles.StatusCompleted, Reason: profiles.ReasonLoginCheck.With(renewalName), CreatedAt: now, ExpiresAt: now, EndedAt: now,
		BaseSnapshotID: r.snapshot.ID, BaseVersion: r.current.Version, WebhookURL: from.WebhookURL}
	return nil
}
