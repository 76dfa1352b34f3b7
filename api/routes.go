package api

import (
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
)

// call is one request on its way through a handler.
type call struct {
	echo.Context
	caller access.Caller
	body   *arriving // nil where the request has none
}

// cutOff lets no more of the request's body come.
func (c *call) cutOff() {
	if c.body != nil {
		c.body.cutOff()
	}
}

// handler answers a call; its error becomes the answer.
type handler func(c *call) error

// routes is the one list of what the daemon answers.
func (s *Server) routes() {
	const one = "/v1/sessions/:session_id"
	key, view, drive := s.byKey, s.bySessionTicket(session.PurposeView), s.bySessionTicket(session.PurposeCDP)

	s.route(http.MethodPost, "/v1/sessions", key, noQuery(s.createSession))
	s.route(http.MethodGet, "/v1/sessions", key, s.listSessions)
	s.route(http.MethodDelete, "/v1/sessions", key, s.deleteSessions)
	s.route(http.MethodGet, one, key, noQuery(s.getSession))
	s.route(http.MethodDelete, one, key, s.deleteSession)
	s.route(http.MethodGet, one+"/restore-report", key, noQuery(s.restoreReport))

	s.route(http.MethodGet, one+"/runs", key, noQuery(s.listRuns))
	s.route(http.MethodGet, one+"/runs/:run_id/events", key, s.runEvents)
	s.route(http.MethodGet, one+"/events", key, s.events)

	s.route(http.MethodGet, one+"/status", key, noQuery(s.status))
	s.route(http.MethodPost, one+"/pause", key, noQuery(s.acknowledge(s.service.Pause)))
	s.route(http.MethodPost, one+"/resume", key, noQuery(s.resume))
	s.route(http.MethodPost, one+"/cancel", key, noQuery(s.acknowledge(s.cancel)))
	s.route(http.MethodPost, one+"/message", key, noQuery(s.postMessage))
	s.route(http.MethodGet, one+"/messages", key, s.listMessages)
	s.route(http.MethodPost, one+"/navigate", key, noQuery(s.navigate))
	s.route(http.MethodGet, one+"/screenshot", key, noQuery(s.screenshot))
	s.route(http.MethodGet, "/v1/models", key, s.models)

	s.route(http.MethodGet, one+"/live", view, ticketQuery(s.livePage))
	s.route(http.MethodGet, one+"/live.jpg", view, ticketQuery(s.livePicture))
	s.route(http.MethodGet, one+"/cdp", drive, ticketQuery(s.cdp))
	s.route(http.MethodGet, one+"/cdp/page/:target_id", drive, ticketQuery(s.cdp))
	for _, slash := range []string{"", "/"} {
		s.route(http.MethodGet, one+"/json/version"+slash, drive, ticketQuery(s.browserVersion))
		s.route(http.MethodGet, one+"/json/list"+slash, drive, ticketQuery(s.pages))
	}
	s.route(http.MethodGet, "/v1/connect", s.byConnectTicket, s.connect)
	s.route(http.MethodPost, "/v1/tickets", key, noQuery(s.createTicket))

	s.route(http.MethodGet, one+"/files", key, noQuery(s.listFiles))
	s.route(http.MethodPost, one+"/files", key, s.putFile)
	s.route(http.MethodGet, one+"/files/:name", key, noQuery(s.getFile))
	s.route(http.MethodDelete, one+"/files/:name", key, noQuery(s.deleteFile))

	s.route(http.MethodPost, one+"/snapshots", key, noQuery(s.checkpoint))
	s.route(http.MethodGet, one+"/snapshots", key, s.listSnapshots)
	s.route(http.MethodGet, one+"/snapshots/latest", key, noQuery(s.latestSnapshot))
	s.route(http.MethodGet, "/v1/snapshots", key, s.allSnapshots)
	s.route(http.MethodPost, "/v1/snapshots", key, s.importSnapshot)
	s.route(http.MethodGet, "/v1/snapshots/:snapshot_id/state", key, s.snapshotState)
	s.route(http.MethodGet, "/v1/snapshots/:snapshot_id/diff/:other_id", key, s.diffSnapshots)
	s.route(http.MethodGet, "/v1/snapshots/:snapshot_id/archive", key, s.archive)
	s.route(http.MethodPost, "/v1/snapshots/:snapshot_id/verify", key, noQuery(s.verifySnapshot))
	s.route(http.MethodGet, "/v1/snapshots/:snapshot_id", key, noQuery(s.getSnapshot))
	s.route(http.MethodDelete, "/v1/snapshots/:snapshot_id", key, noQuery(s.deleteSnapshot))

	const scope = one + "/scopes/:scope/:scope_id"
	s.route(http.MethodPut, scope+"/snapshots/:snapshot_id", key, s.putDocument)
	s.route(http.MethodGet, scope+"/snapshots/:snapshot_id", key, noQuery(s.getDocument))
	s.route(http.MethodDelete, scope+"/snapshots/:snapshot_id", key, noQuery(s.deleteDocument))
	s.route(http.MethodGet, scope+"/snapshots", key, s.listDocuments)
	s.route(http.MethodGet, scope+"/manifest", key, noQuery(s.getManifest))
	s.route(http.MethodPut, scope+"/manifest", key, noQuery(s.putManifest))
	s.route(http.MethodDelete, one+"/scopes", key, noQuery(s.deleteDocuments))

	s.route(http.MethodGet, one+"/notes", key, noQuery(s.sessionNotes))
	for _, memory := range []string{"/api/v1/public/memory/v2/session", "/v1/memory/v2/session"} {
		s.route(http.MethodPost, memory, key, noQuery(s.putNote))
		s.route(http.MethodGet, memory+"/latest", key, s.latestNote)
		s.route(http.MethodGet, memory+"/:note_id", key, noQuery(s.getNote))
	}

	s.route(http.MethodGet, "/v1/webhooks/deliveries", key, s.listDeliveries)
	s.route(http.MethodPost, "/v1/webhooks/deliveries/:delivery_id/resend", key, noQuery(s.resendDelivery))

	s.route(http.MethodPost, "/v1/prune", key, noQuery(s.prune))

	s.route(http.MethodGet, "/v1/users/:user_id", key, noQuery(s.getUser))
	s.route(http.MethodPatch, "/v1/users/:user_id", key, noQuery(s.patchUser))
	s.route(http.MethodPost, "/v1/users/:user_id/default/check", key, noQuery(s.checkDefault))
	s.route(http.MethodGet, "/v1/users/:user_id/default", key, noQuery(s.getDefault))
	s.route(http.MethodPut, "/v1/users/:user_id/default", key, noQuery(s.putDefault))
	s.route(http.MethodDelete, "/v1/users/:user_id/default", key, noQuery(s.deleteDefault))
	s.route(http.MethodGet, "/v1/users/:user_id/default/history", key, s.defaultHistory)
	s.route(http.MethodGet, "/v1/users/:user_id/default/state", key, s.defaultState)

	s.route(http.MethodPost, "/v1/extensions", key, noQuery(s.putExtension))
	s.route(http.MethodGet, "/v1/extensions", key, noQuery(s.listExtensions))
	s.route(http.MethodGet, "/v1/extensions/:extension_id", key, noQuery(s.getExtension))
	s.route(http.MethodDelete, "/v1/extensions/:extension_id", key, s.deleteExtension)

	s.route(http.MethodGet, "/v1/me", key, noQuery(s.me))
	s.route(http.MethodGet, "/v1/keys", key, noQuery(s.listKeys))
	s.route(http.MethodPost, "/v1/keys", key, noQuery(s.createKey))
	s.route(http.MethodDelete, "/v1/keys/:key_id", key, noQuery(s.deleteKey))

	s.route(http.MethodGet, "/healthz", anybody, noQuery(s.health))
	s.route(http.MethodGet, "/readyz", anybody, noQuery(s.ready))
	if s.metrics != nil {
		s.route(http.MethodGet, "/metrics", anybody, noQuery(s.scrape))
	}
	s.route(http.MethodGet, "/openapi.yaml", anybody, noQuery(s.openapi))
}

func (s *Server) route(method, path string, authorise authorizer, h handler) {
	s.echo.Add(method, path, func(ec echo.Context) error {
		c := &call{Context: ec}
		c.body, _ = ec.Request().Body.(*arriving)
		if err := authorise(c); err != nil {
			return err
		}
		if to, ok := ec.Response().Writer.(*answer); ok {
			to.owner = c.caller.KeyID
		}
		if conn := connectionOf(c.Request()); conn != nil && c.caller.KeyID != "" {
			defer s.connections.serve(conn)()
		}
		return h(c)
	})
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

// ticketQuery refuses every query parameter but the ticket, which the
// authorizer has read.
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

// param is a path parameter, unescaped.
func (c *call) param(name string) (string, error) {
	value, err := url.PathUnescape(c.Param(name))
	if err != nil || !utf8.ValidString(value) {
		return "", fault.New(fault.InvalidRequest, "api.path", "%s: is not percent-encoded UTF-8", name)
	}
	return value, nil
}

// id is a path parameter that names an object; one that cannot be any object's
// ID is not found, with the given code.
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

func (c *call) sessionID() (string, error) { return c.id("session_id", fault.SessionNotFound) }
