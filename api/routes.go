package api

import (
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// call is one request and its caller, as handlers get them.
type call struct {
	echo.Context
	caller access.Caller
	body   *pacedBody // nil if the request has no body
	// byTicket says that the caller gave a ticket, not a key.
	byTicket bool
	audit    *auditedCall // set after the caller is authenticated
	kept     []byte       // the body, if keepSmall has read it; nil: it can be used once
}

// cutOff makes further reads of the request's body fail.
func (c *call) cutOff() {
	if c.body != nil {
		c.body.cutOff()
	}
}

// handler answers a call. Its error becomes the answer.
type handler func(c *call) error

// sessionPath is the route of a session.
const sessionPath = "/v1/sessions/:session_id"

// livePath is the route of the live view, whose errors are pages for people.
const livePath = sessionPath + "/live"

// routes registers all routes of the daemon.
func (s *Server) routes(h handlers, a *authenticator) {
	const one = sessionPath
	key, drive := a.byKey, a.bySessionTicket(access.PurposeCDP)
	view := a.bySessionTicket(access.PurposeView, access.PurposeControl, access.PurposeSharedView, access.PurposeSharedControl)
	control, own := a.bySessionTicket(access.PurposeControl, access.PurposeSharedControl), a.bySessionTicket(access.PurposeControl)

	s.route(http.MethodPost, "/v1/sessions", key, noQuery(h.sessions.create))
	s.route(http.MethodGet, "/v1/sessions", key, h.sessions.list)
	s.route(http.MethodDelete, "/v1/sessions", key, h.sessions.deleteAll)
	s.route(http.MethodGet, one, key, noQuery(h.sessions.get))
	s.route(http.MethodDelete, one, key, h.sessions.delete)
	s.route(http.MethodGet, one+"/restore-report", key, noQuery(h.sessions.restoreReport))

	s.route(http.MethodGet, one+"/runs", key, noQuery(h.history.listRuns))
	s.route(http.MethodGet, one+"/runs/:run_id/events", key, h.history.runEvents)
	s.route(http.MethodGet, one+"/events", key, h.history.events)

	s.route(http.MethodGet, one+"/status", key, noQuery(h.controls.status))
	s.route(http.MethodPost, one+"/pause", key, noQuery(h.controls.pause))
	s.route(http.MethodPost, one+"/resume", key, noQuery(h.controls.resume))
	s.route(http.MethodPost, one+"/cancel", key, noQuery(h.messages.cancel))
	s.route(http.MethodPost, one+"/message", key, noQuery(h.messages.post))
	s.route(http.MethodGet, one+"/messages", key, h.messages.list)
	s.route(http.MethodPost, one+"/navigate", key, noQuery(h.controls.navigate))
	s.route(http.MethodGet, one+"/screenshot", key, noQuery(h.controls.screenshot))
	s.route(http.MethodGet, "/v1/models", key, models)

	s.route(http.MethodGet, livePath, view, ticketQuery(h.controls.livePage))
	s.route(http.MethodGet, one+"/live/socket", view, ticketQuery(h.cdp.live))
	s.route(http.MethodGet, one+"/live/files", control, ticketQuery(h.files.list))
	s.route(http.MethodPost, one+"/live/files", control, h.files.add)
	s.route(http.MethodGet, one+"/live/files/:name", control, ticketQuery(h.files.get))
	s.route(http.MethodPost, one+"/live/save", a.bySessionTicket(access.PurposeSave), h.liveSaves.save)
	s.route(http.MethodPost, one+"/links", own, ticketQuery(h.links.create))
	s.route(http.MethodGet, one+"/links", own, ticketQuery(h.links.list))
	s.route(http.MethodDelete, one+"/links/:link_id", own, ticketQuery(h.links.revoke))
	s.route(http.MethodGet, one+"/cdp", drive, h.cdp.serve)
	s.route(http.MethodGet, one+"/cdp/page/:target_id", drive, h.cdp.serve)
	for _, slash := range []string{"", "/"} {
		s.route(http.MethodGet, one+"/json/version"+slash, drive, ticketQuery(h.cdp.browserVersion))
		s.route(http.MethodGet, one+"/json/list"+slash, drive, ticketQuery(h.cdp.pages))
	}
	s.route(http.MethodGet, "/v1/connect", a.byConnectTicket, h.oneShots.serve)
	s.route(http.MethodPost, "/v1/tickets", key, noQuery(h.keys.createTicket))

	s.route(http.MethodGet, one+"/files", key, noQuery(h.files.list))
	s.route(http.MethodPost, one+"/files", key, h.files.put)
	s.route(http.MethodGet, one+"/files/:name", key, noQuery(h.files.get))
	s.route(http.MethodDelete, one+"/files/:name", key, noQuery(h.files.delete))

	s.route(http.MethodPost, one+"/snapshots", key, noQuery(h.checkpoints.create))
	s.route(http.MethodGet, one+"/snapshots", key, h.snapshots.list)
	s.route(http.MethodGet, one+"/snapshots/latest", key, noQuery(h.snapshots.latest))
	s.route(http.MethodGet, "/v1/snapshots", key, h.snapshots.listAll)
	s.route(http.MethodPost, "/v1/snapshots", key, h.imports.create)
	s.route(http.MethodGet, "/v1/snapshots/:snapshot_id/state", key, h.exports.snapshotState)
	s.route(http.MethodGet, "/v1/snapshots/:snapshot_id/diff/:other_id", key, h.snapshots.diff)
	s.route(http.MethodGet, "/v1/snapshots/:snapshot_id/archive", key, h.exports.archive)
	s.route(http.MethodPost, "/v1/snapshots/:snapshot_id/verify", key, noQuery(h.snapshots.verify))
	s.route(http.MethodGet, "/v1/snapshots/:snapshot_id", key, noQuery(h.snapshots.get))
	s.route(http.MethodDelete, "/v1/snapshots/:snapshot_id", key, noQuery(h.snapshots.delete))

	const scope = one + "/scopes/:scope/:scope_id"
	s.route(http.MethodPut, scope+"/snapshots/:snapshot_id", key, h.documents.put)
	s.route(http.MethodGet, scope+"/snapshots/:snapshot_id", key, noQuery(h.documents.get))
	s.route(http.MethodDelete, scope+"/snapshots/:snapshot_id", key, noQuery(h.documents.delete))
	s.route(http.MethodGet, scope+"/snapshots", key, h.documents.list)
	s.route(http.MethodGet, scope+"/manifest", key, noQuery(h.documents.getManifest))
	s.route(http.MethodPut, scope+"/manifest", key, noQuery(h.documents.putManifest))
	s.route(http.MethodDelete, one+"/scopes", key, noQuery(h.documents.deleteAll))

	s.route(http.MethodGet, one+"/notes", key, noQuery(h.notes.ofSession))
	for _, memory := range []string{"/api/v1/public/memory/v2/session", "/v1/memory/v2/session", "/memory/v2/session"} {
		s.route(http.MethodPost, memory, key, noQuery(h.notes.put))
		s.route(http.MethodGet, memory+"/latest", key, h.notes.latest)
		s.route(http.MethodGet, memory+"/:note_id", key, noQuery(h.notes.get))
	}

	s.route(http.MethodGet, "/v1/webhooks/deliveries", key, h.deliveries.list)
	s.route(http.MethodPost, "/v1/webhooks/deliveries/:delivery_id/resend", key, noQuery(h.deliveries.resend))

	s.route(http.MethodGet, "/v1/webhooks/secrets", key, h.hookSecrets.list)
	s.route(http.MethodPut, "/v1/webhooks/secrets", key, noQuery(h.hookSecrets.put))
	s.route(http.MethodDelete, "/v1/webhooks/secrets", key, h.hookSecrets.delete)

	s.route(http.MethodPost, "/v1/prune", key, noQuery(h.snapshots.prune))

	s.route(http.MethodGet, "/v1/users/:user_id", key, noQuery(h.settings.get))
	s.route(http.MethodPatch, "/v1/users/:user_id", key, noQuery(h.settings.patch))
	s.route(http.MethodPost, "/v1/users/:user_id/default/check", key, noQuery(h.defaults.check))
	s.route(http.MethodGet, "/v1/users/:user_id/default", key, noQuery(h.defaults.get))
	s.route(http.MethodPut, "/v1/users/:user_id/default", key, noQuery(h.defaults.put))
	s.route(http.MethodDelete, "/v1/users/:user_id/default", key, noQuery(h.defaults.delete))
	s.route(http.MethodGet, "/v1/users/:user_id/default/history", key, h.defaults.history)
	s.route(http.MethodGet, "/v1/users/:user_id/default/state", key, h.exports.defaultState)

	s.route(http.MethodPost, "/v1/extensions", key, noQuery(h.extensions.put))
	s.route(http.MethodGet, "/v1/extensions", key, noQuery(h.extensions.list))
	s.route(http.MethodGet, "/v1/extensions/:extension_id", key, noQuery(h.extensions.get))
	s.route(http.MethodDelete, "/v1/extensions/:extension_id", key, h.extensions.delete)

	s.route(http.MethodGet, "/v1/me", key, noQuery(me))
	s.route(http.MethodGet, "/v1/keys", key, noQuery(h.keys.list))
	s.route(http.MethodPost, "/v1/keys", key, noQuery(h.keys.create))
	s.route(http.MethodPatch, "/v1/keys/:key_id", key, noQuery(h.keys.patch))
	s.route(http.MethodPost, "/v1/keys/:key_id/rotate", key, noQuery(h.keys.rotate))
	s.route(http.MethodDelete, "/v1/keys/:key_id", key, noQuery(h.keys.delete))
	s.route(http.MethodGet, "/v1/audit", key, h.audit.list)

	s.route(http.MethodGet, "/v1/nodes", key, noQuery(h.nodes.list))
	s.route(http.MethodPost, "/v1/nodes/:node_id/drain", key, noQuery(h.nodes.drain))
	s.route(http.MethodDelete, "/v1/nodes/:node_id/drain", key, noQuery(h.nodes.undrain))
	s.route(http.MethodDelete, "/v1/nodes/:node_id", key, noQuery(h.nodes.remove))

	s.route(http.MethodGet, "/healthz", noAuth, noQuery(health))
	s.route(http.MethodGet, "/readyz", noAuth, noQuery(h.operations.ready))
	if h.operations.metrics != nil {
		s.route(http.MethodGet, "/metrics", noAuth, noQuery(h.operations.scrape))
	}
	s.route(http.MethodGet, "/openapi.yaml", noAuth, noQuery(openapi))
}

func (s *Server) route(method, path string, authorise authorizer, do handler) {
	rule, known := auditRules[method+" "+path]
	if !known { // a test refuses this
		rule = auditRule{method + " " + path, auditAlways}
	}
	reached := reachOf(method, path)
	s.echo.Add(method, path, func(ec echo.Context) error {
		c := &call{Context: ec}
		c.body, _ = ec.Request().Body.(*pacedBody)
		if done, err := s.ownCall(c); done {
			return err
		}
		err := authorise(c)
		if err == nil && c.caller.KeyID != "" {
			defer s.connections.serve(connectionOf(c.Request()))()
		}
		counted := false // for the rate of requests
		failed := s.whileMoving(c, reached, err, func() error {
			if ticketElsewhere(c, err) { // the session may have moved here meanwhile
				err = authorise(c)
			}
			if err != nil {
				s.auditUnknown(c, rule, err)
				return err
			}
			c.audit = s.beginAudit(c, rule)
			if to, ok := ec.Response().Writer.(*pacedWriter); ok {
				to.owner = c.caller.KeyID
			}
			return audited(c, func(c *call) error {
				if c.caller.KeyID == "" {
					return do(c)
				}
				if placedHere(c) { // the node that has passed it on has counted it, and records it
					c.audit.class = placedClass(path, rule.class)
				} else if !counted {
					if err := takeRequest(s.rates, c, isManaging(path)); err != nil {
						return err
					}
					counted = true
				}
				c.audit.findUserEarly(c)
				return do(c)
			})
		})
		if failed != nil && c.audit != nil {
			c.audit.end(c, failed) // the session moved, and the call could not be repeated
		}
		return failed
	})
}

// audited calls a handler and records the call, unless its session moves: then another node may
// carry it out.
func audited(c *call, do handler) error {
	var err error = fault.New(fault.Internal, "api.panic", "")
	defer func() {
		if !c.again(err) {
			c.audit.end(c, err)
		}
	}()
	err = do(c)
	return err
}

// noQuery refuses every query parameter.
func noQuery(h handler) handler {
	return func(c *call) error {
		if err := c.query(&none{}); err != nil {
			return err
		}
		return h(c)
	}
}

// ticketQuery refuses every query parameter except the ticket, which the authorizer reads.
func ticketQuery(h handler) handler {
	return func(c *call) error {
		var q struct {
			Ticket string `json:"ticket"`
		}
		if err := c.query(&q); err != nil {
			return err
		}
		return h(c)
	}
}

// param returns a path parameter, unescaped.
func (c *call) param(name string) (string, error) {
	value, err := url.PathUnescape(c.Param(name))
	if err != nil || !utf8.ValidString(value) {
		return "", fault.New(fault.InvalidRequest, "api.path", "%s: is not percent-encoded UTF-8", name)
	}
	return value, nil
}

// id returns a path parameter that names an object. The code missing is for a value that
// cannot be an object's ID.
func (c *call) id(name string, missing fault.Code) (string, error) {
	value, err := c.param(name)
	if err != nil {
		return "", err
	}
	if !idPattern.MatchString(value) {
		return "", fault.New(missing, "api.path", "")
	}
	return value, nil
}

func (c *call) sessionID() (string, error) {
	id, err := c.param("session_id")
	if err == nil && !idPattern.MatchString(id) {
		err = access.NoSession(shortened(id))
	}
	return id, err
}
