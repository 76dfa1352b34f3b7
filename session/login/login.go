package login

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/settings"
)

// answerDeadline is how long Chrome may take to answer, in addition to the timeout that
// the check has for the page.
const answerDeadline = 30 * time.Second

// Records is what checks need of the catalogue; see [profiles.UserStore],
// [profiles.DefaultStore] and [profiles.SnapshotStore].
type Records interface {
	Session(ctx context.Context, id string) (profiles.Session, error)
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	Default(ctx context.Context, userID string) (profiles.Default, error)
	User(ctx context.Context, id string) (profiles.User, error)
	UpdateUser(ctx context.Context, id string, at time.Time, change func(*profiles.User) error) (profiles.User, error)
}

// Sessions is what checks need of the live sessions.
type Sessions interface {
	// EnterCheck registers a requested check of a user's default. It first waits for a
	// running check of that user. No other starts until leave is called.
	EnterCheck(ctx context.Context, userID string) (leave func(), err error)
	// TakeSlot takes a slot for a check that a caller asks for, on data of a user. It counts
	// as a session of both. If none is free or a quota is reached, the error is
	// too_many_sessions or quota_exceeded.
	TakeSlot(ctx context.Context, c access.Caller, userID string) (release func(), err error)
	// Work returns a context that ends with ctx or when the daemon stops. The daemon
	// waits until leave is called. If the daemon is stopping already, the error is
	// shutting_down.
	Work(ctx context.Context) (_ context.Context, leave func(), err error)
}

// Snapshots prevents the removal of stored snapshots; see library.Snapshots.
type Snapshots interface {
	Hold(ctx context.Context, row profiles.Snapshot, what string) (release func(), err error)
}

// Restorer starts Chromes with snapshots; see [restore.Restorer].
type Restorer interface {
	FromFiles(ctx context.Context, q restore.Request, row profiles.Snapshot) (restore.Files, error)
}

// Notices makes the deliveries of webhooks; see [events.Notices].
type Notices interface {
	Of(rec profiles.Session, events ...string) []profiles.Notice
	Wake()
}

// Config is what a Checker needs.
type Config struct {
	Records   Records
	Users     *settings.Users
	Sessions  Sessions
	Snapshots Snapshots
	Restorer  Restorer
	Notices   Notices
	Meter     Meter
	Now       func() time.Time
	Log       *slog.Logger
}

// Checker makes login checks and stores their outcomes with the users. Its methods are
// safe for concurrent use.
type Checker struct{ cfg Config }

// NewChecker makes a Checker.
func NewChecker(cfg Config) *Checker { return &Checker{cfg} }

// CheckDefault makes a user's login check in a separate Chrome, with the user's default
// but without its tabs, and ends that Chrome without a save. It stores the outcome with
// the user. If the settings have no check, the error is no_login_check. Checks of one user
// run one after another.
func (k *Checker) CheckDefault(ctx context.Context, c access.Caller, userID string) (Outcome, error) {
	if err := c.ForUser(userID, access.Manage); err != nil {
		return Outcome{}, err
	}
	leave, err := k.cfg.Sessions.EnterCheck(ctx, userID)
	if err != nil {
		return Outcome{}, err
	}
	defer leave()
	d, err := k.cfg.Records.Default(ctx, userID)
	if err != nil {
		return Outcome{}, err
	}
	set, err := k.cfg.Users.For(ctx, userID)
	if err != nil {
		return Outcome{}, err
	}
	if set.LoginCheck == nil {
		return Outcome{}, fault.New(fault.NoLoginCheck, "session.check", "the user's settings have no login_check; set one first")
	}
	snap, err := k.cfg.Records.Snapshot(ctx, d.SnapshotID)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := k.CheckSnapshot(ctx, c, snap, *set.LoginCheck)
	if err != nil {
		return Outcome{}, err
	}
	outcome.SnapshotID, outcome.Version = &d.SnapshotID, &d.Version
	return k.Record(context.WithoutCancel(ctx), userID, snap, outcome)
}

// Record stores the outcome of a check of the user's default with the user. If the login
// has just expired it notifies webhooks. snap is the checked snapshot, and
// outcome.Version the default's version. Record returns the outcome as stored.
func (k *Checker) Record(ctx context.Context, userID string, snap profiles.Snapshot, outcome Outcome) (Outcome, error) {
	from, err := k.cfg.Records.Session(ctx, snap.SessionID)
	if err != nil {
		return outcome, err
	}
	expired, now := false, outcome
	_, err = k.cfg.Records.UpdateUser(ctx, userID, outcome.CheckedAt, func(u *profiles.User) error {
		outcome, expired = now.after(LastOutcome(*u)) // the catalogue may call this more than once
		if expired {
			u.Notices, u.NoticesOf = k.cfg.Notices.Of(from, events.HookExpired), from.ID
		}
		u.LoginChecked = profiles.JSON(outcome)
		return nil
	})
	if err == nil && expired {
		k.cfg.Meter.LoginExpired()
	}
	k.cfg.Notices.Wake()
	return outcome, err
}

// CheckSnapshot makes a check of a snapshot in a separate Chrome, which takes a slot and
// counts as a session of the snapshot's user and of the caller's key. A daemon that stops
// waits for it.
func (k *Checker) CheckSnapshot(ctx context.Context, c access.Caller, snap profiles.Snapshot, check settings.LoginCheck) (Outcome, error) {
	free, err := k.cfg.Sessions.TakeSlot(ctx, c, snap.UserID)
	if err != nil {
		return Outcome{}, err
	}
	defer free()
	ctx, leave, err := k.cfg.Sessions.Work(ctx)
	if err != nil {
		return Outcome{}, err
	}
	defer leave()
	release, err := k.cfg.Snapshots.Hold(ctx, snap, "restored")
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	limits, err := k.cfg.Users.Egress(ctx, snap.UserID)
	if err != nil {
		return Outcome{}, err
	}
	up, err := k.cfg.Restorer.FromFiles(ctx, restore.Request{Engine: browser.EngineChrome, Egress: limits}, snap)
	if err != nil {
		return Outcome{}, err
	}
	defer browsers.Discard(ctx, up.Chrome, k.cfg.Log)
	return k.Check(ctx, up.Chrome, check)
}

// BeforeDefault makes a check of a snapshot, as [Checker.CheckSnapshot], before the default
// moves to it. If the check cannot be made, the outcome says so.
func (k *Checker) BeforeDefault(ctx context.Context, c access.Caller, snap profiles.Snapshot, check settings.LoginCheck) Outcome {
	outcome, err := k.CheckSnapshot(ctx, c, snap, check)
	if err != nil {
		outcome = NotChecked(k.cfg.Now(), err)
		k.cfg.Log.Warn("a login check before the default moves could not be made; the default does not move", "snapshot", snap.ID, "error", err)
	}
	return outcome
}

// Chrome is what a check needs of a browser.
type Chrome interface {
	CheckLogin(ctx context.Context, check browser.LoginCheck) (browser.LoginOutcome, error)
}

// Check makes a check in a running Chrome. An error means that Chrome could not make it;
// what the site answered is in the outcome.
func (k *Checker) Check(ctx context.Context, chrome Chrome, check settings.LoginCheck) (Outcome, error) {
	began := k.cfg.Now()
	asked := check.Browser()
	ctx, cancel := context.WithTimeout(ctx, asked.Timeout+answerDeadline)
	defer cancel()
	found, err := chrome.CheckLogin(ctx, asked)
	outcome := Outcome{LoggedIn: found.LoggedIn && err == nil, CheckedAt: began.UTC(), Conditions: found.Conditions,
		DurationMS: k.cfg.Now().Sub(began).Milliseconds()}
	if outcome.Conditions == nil {
		outcome.Conditions = []browser.Condition{}
	}
	if found.URL != "" {
		outcome.URL = &found.URL
	}
	if found.Status != 0 {
		outcome.Status = &found.Status
	}
	if found.Status >= 500 && !found.LoggedIn && found.Problem == "" {
		found.Problem = fmt.Sprintf("the site answered %d", found.Status)
	}
	if found.Problem != "" {
		outcome.Error = &found.Problem
	}
	verdict := outcome.Verdict()
	if err != nil {
		verdict = Failed
	}
	k.cfg.Meter.LoginChecked(verdict)
	return outcome, err
}

// LastCheck returns the outcome of the last check of the user's default; nil if none was
// made.
func (k *Checker) LastCheck(ctx context.Context, c access.Caller, userID string) (*Outcome, error) {
	if err := c.ForUser(userID, access.Look); err != nil {
		return nil, err
	}
	user, err := k.cfg.Records.User(ctx, userID)
	if err != nil || len(user.LoginChecked) == 0 {
		return nil, err
	}
	outcome := new(Outcome)
	err = json.Unmarshal(user.LoginChecked, outcome)
	return outcome, fault.Wrap(err, fault.StoreFailed, "session.check", "the stored outcome of the last check cannot be read")
}
