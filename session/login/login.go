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

// answerDeadline is how long a Chrome may take to answer a check, besides the timeout
// that the check has for the page.
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

// Sessions is what checks ask of the live sessions.
type Sessions interface {
	// EnterCheck notes a check of a user's default on request, after a scheduled one
	// that is under way. No scheduled one begins until leave is called.
	EnterCheck(ctx context.Context, userID string) (leave func(), err error)
	// Work is ctx until the daemon stops, which waits until leave is called. Where it
	// stops already, that is shutting_down.
	Work(ctx context.Context) (_ context.Context, leave func(), err error)
}

// Places are the slots of sessions, of which a check takes one; see capacity.Manager.
type Places interface {
	Acquire(ctx context.Context, wait bool) error
	Release()
}

// Snapshots holds stored snapshots; see library.Snapshots.
type Snapshots interface {
	Hold(ctx context.Context, row profiles.Snapshot, what string) (release func(), err error)
}

// Restorer starts Chromes with snapshots; see [restore.Restorer].
type Restorer interface {
	FromFiles(ctx context.Context, q restore.Request, row profiles.Snapshot) (restore.Files, error)
}

// Notices make the deliveries of webhooks; see [events.Notices].
type Notices interface {
	Of(rec profiles.Session, events ...string) []profiles.Notice
	Wake()
}

// Config is what a Checker needs.
type Config struct {
	Records   Records
	Users     *settings.Users
	Sessions  Sessions
	Places    Places
	Snapshots Snapshots
	Restorer  Restorer
	Notices   Notices
	Meter     Meter
	Now       func() time.Time
	Log       *slog.Logger
}

// Checker runs login checks and keeps their outcomes with the users. Its methods are
// safe for concurrent use.
type Checker struct{ cfg Config }

// NewChecker makes a Checker.
func NewChecker(cfg Config) *Checker { return &Checker{cfg} }

// CheckDefault runs a user's login check in a Chrome of its own, with the user's default
// but without its tabs, and ends that Chrome unsaved. The outcome is kept with the
// user. Settings without a check are no_login_check.
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
		return Outcome{}, fault.New(fault.NoLoginCheck, "session.check", "the user's settings have no login_check")
	}
	snap, err := k.cfg.Records.Snapshot(ctx, d.SnapshotID)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := k.CheckSnapshot(ctx, snap, *set.LoginCheck)
	if err != nil {
		return Outcome{}, err
	}
	outcome.SnapshotID, outcome.Version = &d.SnapshotID, &d.Version
	return k.Record(context.WithoutCancel(ctx), userID, snap, outcome)
}

// Record keeps the outcome of a check of the user's default with the user, and notifies
// webhooks where the login is over. snap is what was checked; the outcome has the
// default's version. It returns the outcome as it is kept.
func (k *Checker) Record(ctx context.Context, userID string, snap profiles.Snapshot, outcome Outcome) (Outcome, error) {
	from, err := k.cfg.Records.Session(ctx, snap.SessionID)
	if err != nil {
		return outcome, err
	}
	over := false
	_, err = k.cfg.Records.UpdateUser(ctx, userID, outcome.CheckedAt, func(u *profiles.User) error {
		outcome, over = outcome.after(LastOutcome(*u))
		if over {
			u.Notices, u.NoticesOf = k.cfg.Notices.Of(from, events.HookExpired), from.ID
		}
		u.LoginChecked = profiles.JSON(outcome)
		return nil
	})
	if err == nil && over {
		k.cfg.Meter.LoginExpired()
	}
	k.cfg.Notices.Wake()
	return outcome, err
}

// CheckSnapshot runs a check of a snapshot in a Chrome of its own, which takes a slot.
// The daemon waits for it when it stops.
func (k *Checker) CheckSnapshot(ctx context.Context, snap profiles.Snapshot, check settings.LoginCheck) (Outcome, error) {
	if err := k.cfg.Places.Acquire(ctx, false); err != nil {
		return Outcome{}, err
	}
	defer k.cfg.Places.Release()
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
	up, err := k.cfg.Restorer.FromFiles(ctx, restore.Request{Engine: browser.EngineChrome}, snap)
	if err != nil {
		return Outcome{}, err
	}
	defer browsers.Discard(ctx, up.Chrome, k.cfg.Log)
	return k.Check(ctx, up.Chrome, check)
}

// Chrome is what a check needs of a browser.
type Chrome interface {
	CheckLogin(ctx context.Context, check browser.LoginCheck) (browser.LoginOutcome, error)
}

// Check runs a check in a Chrome that runs already. An error is that Chrome could not be
// asked; what the site answers is in the outcome.
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
	k.cfg.Meter.LoginChecked(outcome.verdict(err))
	return outcome, err
}

// LastCheck returns the outcome of the last check on request of the user's default;
// nil where none was made.
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
	return outcome, fault.Wrap(err, fault.StoreFailed, "session.check", "the recorded outcome of the last check cannot be read")
}
