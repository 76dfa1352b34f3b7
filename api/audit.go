package api

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/auditlog"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/save"
)

// Audit records calls, and lists what was recorded.
type Audit interface {
	// Record does not wait.
	Record(a auditlog.Act)
	// UserOf returns the user of a session or a snapshot; "" if it is not known.
	UserOf(ctx context.Context, sessionID, snapshotID string) string
	State() auditlog.State
	// Page lists entries; next is the number for the filter's StartAfter, 0 at the end.
	Page(ctx context.Context, c access.Caller, f auditlog.Filter) (page []auditlog.Entry, next int64, err error)
}

var _ Audit = (*auditlog.Log)(nil)

// What bounds the entries of acts that callers can repeat at will.
const (
	unknownWindow  = time.Minute // of an address without a valid key
	refusedWindow  = time.Minute
	readWindow     = time.Hour // of reads
	maxUnknownFrom = 1000      // addresses without a valid key in a window
	maxRefused     = 100       // calls and codes of a key
	maxRead        = 1000      // objects that a key reads
)

// auditedCall is a call for the audit log. Handlers complete its fields. The routes make
// it, and record it when the call has ended.
type auditedCall struct {
	auditlog.Act
	log   Audit
	class auditClass
	ended bool
	// overRate says that the rates of requests refused the call. Such a call is not worth a
	// look at the catalogue.
	overRate bool
	// everybody says that the call lists data of all users.
	everybody bool
}

// beginAudit returns the audited call of an authenticated caller.
func (s *Server) beginAudit(c *call, rule auditRule) *auditedCall {
	a := &auditedCall{log: s.audit, class: rule.class, Act: auditlog.Act{Call: rule.call, By: by(c), KeyID: c.caller.KeyID, KeyUser: c.caller.UserID, Address: s.urls.address(c.Request())}}
	if rule.class == auditNever {
		return a
	}
	a.SessionID, a.SnapshotID = c.named("session_id"), c.named("snapshot_id")
	a.Object = firstNamed(c, "key_id", "extension_id", "link_id", "delivery_id", "run_id", "other_id", "note_id")
	if c.Param("scope") != "" {
		a.Object, a.SnapshotID = c.named("scope")+"/"+c.named("scope_id")+"/"+a.SnapshotID, ""
	}
	user, err := c.param("user_id")
	if user == "" && queriesUser[rule.call] {
		user = c.QueryParam("user_id")
	}
	if err == nil && isUserID("user_id", user) == nil {
		a.UserID = user
	}
	return a
}

// findUserEarly looks up whose data the call is about before the call can delete it. It is
// called once the rates of requests permit the call.
func (a *auditedCall) findUserEarly(c *call) {
	if a.class == auditAlways || a.class != auditNever && c.caller.ForEveryUser() {
		a.findUser(c)
	}
}

// by says who the caller is.
func by(c *call) string {
	switch {
	case c.caller.Link != "":
		return auditlog.ByLink
	case c.byTicket:
		return auditlog.ByTicket
	case c.caller.IsFirst():
		return auditlog.ByFirstKey
	}
	return auditlog.ByKey
}

// named returns a path parameter if it can be an object's ID, else "".
func (c *call) named(name string) string {
	if value, err := c.param(name); err == nil && idPattern.MatchString(value) {
		return value
	}
	return ""
}

func firstNamed(c *call, names ...string) string {
	for _, name := range names {
		if value := c.named(name); value != "" {
			return value
		}
	}
	return ""
}

// findUser looks up whose data the call is about, unless that is known.
func (a *auditedCall) findUser(c *call) {
	if a.UserID == "" && a.SessionID+a.SnapshotID != "" {
		a.UserID = a.log.UserOf(c.Request().Context(), a.SessionID, a.SnapshotID)
	}
}

// secrets says that the call gives out secrets. Programs make such calls again and again.
func (a *auditedCall) secrets() { a.class = auditSeldom }

// listing completes the audited call of a listing, whose query names a user or "". Then a key
// for every user lists the data of all users.
func (a *auditedCall) listing(c *call, userID string) {
	if userID == "" && c.caller.ForEveryUser() {
		a.everybody, a.Object = true, auditlog.OfEverybody
	}
}

// created completes the audited call of a create, with the snapshot that was restored.
func (a *auditedCall) created(s answer.Info) {
	a.SessionID, a.UserID, a.Detail = s.ID, s.UserID, ""
	if s.Existing {
		a.Detail = "existing"
	}
	if s.Restored != nil {
		a.SnapshotID = s.Restored.SnapshotID
	}
}

// saved completes the audited call of a save.
func (a *auditedCall) saved(s library.SnapshotInfo, d *save.DefaultOutcome, code fault.Code) {
	a.SnapshotID, a.SessionID, a.UserID, a.Code = s.ID, cmp.Or(a.SessionID, s.SessionID), cmp.Or(a.UserID, s.UserID), code
	if d != nil && d.Moved {
		a.Detail = strings.TrimSpace(a.Detail + " default")
	}
}

// end records the call with its outcome, if its class says so. A second call does nothing:
// a socket is recorded when it opens.
func (a *auditedCall) end(c *call, err error) {
	if a.ended || a.class == auditNever {
		return
	}
	a.ended, a.Err, a.Refused = true, err, refused(err)
	if a.Refused && !a.overRate {
		a.findUser(c)
	}
	others := a.everybody && err == nil || a.UserID != "" && a.KeyUser != "" && a.UserID != a.KeyUser
	key := "key " + a.KeyID
	switch {
	case a.class == auditAlways && a.Refused:
		a.Repeats = &auditlog.Repeats{In: "refused " + key, Most: maxRefused, Key: a.Call + " " + string(fault.CodeOf(err)), Window: refusedWindow, Varies: true}
	case a.class == auditAlways:
		if c.Response().Header().Get(replayedHeader) != "" {
			a.Detail = strings.TrimSpace(a.Detail + " repeated")
		}
	case others, a.class == auditSeldom, fault.Is(err, fault.Forbidden):
		a.Repeats = &auditlog.Repeats{In: key, Most: maxRead, Key: a.Call + " " + a.UserID + " " + a.SessionID + " " + a.SnapshotID + " " + string(fault.CodeOf(err)), Window: readWindow}
	default:
		return
	}
	a.log.Record(a.Act)
}

// refused reports whether an error is the caller's fault.
func refused(err error) bool {
	return err != nil && statusOf(fault.CodeOf(err)) < http.StatusInternalServerError
}

// auditUnknown records a call without a valid key or ticket. The path may contain anything,
// so the entry has no object.
func (s *Server) auditUnknown(c *call, rule auditRule, err error) {
	if !refused(err) {
		return
	}
	s.audit.Record(auditlog.Act{By: auditlog.ByUnknown, Address: s.urls.address(c.Request()), Call: rule.call, Refused: true, Err: err,
		Repeats: &auditlog.Repeats{In: "unknown", Most: maxUnknownFrom, Key: s.urls.client(c.Request()).String(), Window: unknownWindow}})
}

// auditHandler answers GET /v1/audit.
type auditHandler struct{ audit Audit }

func (h *auditHandler) list(c *call) error {
	q := struct {
		UserID      string `json:"user_id"`
		KeyID       string `json:"key_id"`
		Call        string `json:"call"`
		SessionID   string `json:"session_id"`
		Object      string `json:"object"`
		Outcome     string `json:"outcome"`
		Since       string `json:"since"`
		Until       string `json:"until"`
		Others      bool   `json:"others"`
		OldestFirst bool   `json:"oldest_first"`
		listing
	}{listing: firstPage()}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := firstOf(
		isUserID("user_id", q.UserID), isID("key_id", q.KeyID), atMost("call", q.Call, maxCall), isID("session_id", q.SessionID), atMost("object", q.Object, maxObject),
		oneOf("outcome", q.Outcome, "ok", "refused", "failed"), isTime("since", q.Since), isTime("until", q.Until), q.check(), isNumber("start_after", q.StartAfter),
	); err != nil {
		return err
	}
	f := auditlog.Filter{UserID: q.UserID, KeyID: q.KeyID, Call: q.Call, SessionID: q.SessionID, Object: q.Object, Outcome: auditlog.Outcome(q.Outcome),
		Others: q.Others, OldestFirst: q.OldestFirst, Limit: int(q.Limit)}
	f.Since, _ = time.Parse(time.RFC3339, q.Since) // checked; "" is the zero time
	f.Until, _ = time.Parse(time.RFC3339, q.Until)
	f.StartAfter, _ = strconv.ParseInt(q.StartAfter, 10, 64)
	page, next, err := h.audit.Page(c.Request().Context(), c.caller, f)
	if err != nil {
		return err
	}
	if next != 0 {
		c.Response().Header().Set("X-Next-Token", strconv.FormatInt(next, 10))
	}
	return c.JSON(http.StatusOK, append([]auditlog.Entry{}, page...)) // in JSON [], not null
}

// The longest names to filter by, in bytes.
const maxCall, maxObject = 64, 256

func isNumber(field, value string) error {
	if n, err := strconv.ParseInt(value, 10, 64); value != "" && (err != nil || n < 1) {
		return invalid(field, "must be the number of an entry")
	}
	return nil
}
