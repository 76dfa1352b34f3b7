package session

import (
	"errors"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/auditlog"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/save"
)

// Audit records what the daemon does by itself; see [auditlog.Log]. Calls of the API are
// recorded where they arrive.
type Audit interface {
	Record(a auditlog.Act)
}

// unaudited records nothing.
type unaudited struct{}

func (unaudited) Record(auditlog.Act) {}

// A page can make any number of events. Of one session and kind, the audit log distinguishes
// this many within a window, and counts the others.
const (
	maxAudited    = 16
	auditedWindow = 10 * time.Minute
)

// auditPage records what was refused to the session's pages. Addresses of pages can contain
// secrets, so the log has none, only the network addresses of refused connections.
func (l *liveSession) auditPage(e browser.PageEvent) {
	a := auditlog.Act{UserID: l.rights.UserID, SessionID: l.id, Refused: true}
	switch e.Kind {
	case browser.EventRefused:
		address, _ := e.Data["address"].(string)
		a.Call, a.Object, a.Err = auditlog.EgressRefused, address, fault.New(fault.Forbidden, "session.egress", "")
	case browser.EventCommand:
		method, _ := e.Data["method"].(string)
		a.Call, a.Object, a.Err = auditlog.CommandRefused, method, fault.New(fault.Forbidden, "session.command", "")
	case browser.EventBlocked:
		a.Call, a.Err = auditlog.PageBlocked, fault.New(fault.Forbidden, "session.page", "")
	default:
		return
	}
	a.Repeats = &auditlog.Repeats{In: a.Call + " " + l.id, Most: maxAudited, Key: a.Object, Window: auditedWindow, OfSession: true}
	l.svc.deps.Audit.Record(a)
}

// auditEnd records an ending that no caller asked for.
func (l *liveSession) auditEnd(why cause, e save.EndResult) {
	if why == causeRequested || !e.SessionEnded && e.Err == nil {
		return
	}
	a := auditlog.Act{Call: auditlog.SessionEnded, UserID: l.rights.UserID, SessionID: l.id, Err: e.Err}
	_, a.Detail = why.run()
	if why == causeCrash {
		a.Detail = "crash"
	}
	if s := e.Answer.Snapshot; s != nil {
		a.SnapshotID = s.ID
	}
	l.svc.deps.Audit.Record(a)
}

// auditCheckpoint records an automatic checkpoint, unless nothing was saved.
func (l *liveSession) auditCheckpoint(snapshotID string, stored bool, err error) {
	if !stored && (err == nil || errors.Is(err, autosave.ErrFrozen) || fault.Is(err, fault.SessionEnding) || fault.Is(err, fault.SessionNotRunning)) {
		return
	}
	l.svc.deps.Audit.Record(auditlog.Act{Call: auditlog.Checkpoint, UserID: l.rights.UserID, SessionID: l.id, SnapshotID: snapshotID, Err: err})
}

// auditRescue records what became of a session that a killed daemon left.
func (s *Service) auditRescue(rec profiles.Session, snapshotID string, err error) {
	s.deps.Audit.Record(auditlog.Act{Call: auditlog.Rescued, UserID: rec.UserID, SessionID: rec.ID, SnapshotID: snapshotID, Err: err})
}

// auditLoginCheck records a scheduled login check.
func (s *Service) auditLoginCheck(userID, snapshotID string, o login.Outcome) {
	a := auditlog.Act{Call: auditlog.LoginChecked, UserID: userID, SnapshotID: snapshotID, Detail: string(o.Verdict())}
	if o.Verdict() == login.Failed {
		a.Err = fault.New(fault.BrowserFailed, "session.login_check", "")
	}
	s.deps.Audit.Record(a)
}
