package session

import (
	"cmp"
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

// sessionAudit records what happens to one session without a call.
type sessionAudit struct {
	log           Audit
	session, user string
}

func (s sessionAudit) act(call string, err error) auditlog.Act {
	return auditlog.Act{Call: call, UserID: s.user, SessionID: s.session, Err: err}
}

// page records what was refused to the session's pages and clients. Addresses of pages can
// contain secrets, so the log has none, only the hosts, or else the network addresses, of refused
// connections. An entry shortens a host that is too long.
func (s sessionAudit) page(e browser.PageEvent) {
	a := s.act("", fault.New(fault.Forbidden, "session.audit", ""))
	a.Refused = true
	switch e.Kind {
	case browser.EventRefused:
		host, _ := e.Data["host"].(string)
		address, _ := e.Data["address"].(string)
		a.Call, a.Object = auditlog.EgressRefused, cmp.Or(host, address)
	case browser.EventCommand:
		method, _ := e.Data["method"].(string)
		a.Call, a.Object = auditlog.CommandRefused, method
	case browser.EventBlocked:
		a.Call = auditlog.PageBlocked
	default:
		return
	}
	a.Repeats = &auditlog.Repeats{In: a.Call + " " + s.session, Most: maxAudited, Key: a.Object, Window: auditedWindow, OfSession: true}
	s.log.Record(a)
}

// end records an ending that no caller asked for.
func (s sessionAudit) end(why cause, e save.EndResult) {
	if why == causeRequested || !e.SessionEnded && e.Err == nil {
		return
	}
	a := s.act(auditlog.SessionEnded, e.Err)
	_, a.Detail = why.run()
	if why == causeCrash {
		a.Detail = "crash"
	}
	if saved := e.Answer.Snapshot; saved != nil {
		a.SnapshotID = saved.ID
	}
	s.log.Record(a)
}

// checkpoint records an automatic checkpoint, unless there was nothing to save or no moment
// to save it.
func (s sessionAudit) checkpoint(snapshotID string, stored bool, err error) {
	if !stored && (err == nil || errors.Is(err, autosave.ErrFrozen) || fault.Is(err, fault.SessionEnding) || fault.Is(err, fault.SessionNotRunning)) {
		return
	}
	a := s.act(auditlog.Checkpoint, err)
	a.SnapshotID = snapshotID
	s.log.Record(a)
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
