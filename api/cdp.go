package api

import (
	"context"
	"net/http"
	"regexp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
)

// CDP connects clients to the browsers of live sessions.
type CDP interface {
	// MayDrive returns an error if the caller may not connect to the session.
	MayDrive(ctx context.Context, c access.Caller, id string) error
	// Attach takes one of the session's places for CDP clients until release is called;
	// too_many_clients if none is free, or quota_exceeded. It is called before Connect.
	Attach(ctx context.Context, c access.Caller, id string) (release func(), err error)
	// Connect serves one CDP client until it disconnects, the session ends or the caller's
	// key is deleted.
	Connect(ctx context.Context, c access.Caller, id string, client session.Client, conn session.Conn) error
	// AttachViewer takes one of the session's places for viewers until release is called;
	// too_many_viewers if none is free, or quota_exceeded. It is called before View.
	AttachViewer(ctx context.Context, c access.Caller, id string) (release func(), err error)
	// View serves one viewer of the live view, with control if the caller may drive the
	// session, until it disconnects, the session ends or the caller's key is deleted.
	View(ctx context.Context, c access.Caller, id string, conn session.ViewConn) error
}

var _ CDP = (*session.Service)(nil)

// cdpHandler serves for each session what Chrome serves at its debugging port.
type cdpHandler struct {
	cdp       CDP
	inspector Inspector
	driver    Driver
	sockets   *cdpSockets
	urls      origins
}

var targetPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// serve serves the WebSocket of a session's browser, or of one of its pages.
func (h *cdpHandler) serve(c *call) error {
	client, err := cdpClient(c)
	if err != nil {
		return err
	}
	if err := h.urls.checkUpgrade(c); err != nil {
		return err
	}
	info, err := h.liveSession(c)
	if err != nil {
		return err
	}
	if err := h.cdp.MayDrive(c.Request().Context(), c.caller, info.ID); err != nil {
		return err
	}
	target, err := c.param("target_id")
	if err != nil {
		return err
	}
	if target != "" && !targetPattern.MatchString(target) {
		return fault.New(fault.NotFound, "api.cdp", "target_id: the session has no such page")
	}
	client.TargetID = target
	return h.sockets.serve(c, info.ID, client)
}

// cdpClient returns what the query says of a CDP client.
func cdpClient(c *call) (session.Client, error) {
	var q struct {
		Context string `json:"context"`
		Writes  string `json:"shared_writes"`
		Ticket  string `json:"ticket"` // read by the authorizer
	}
	if err := c.query(&q); err != nil {
		return session.Client{}, err
	}
	return session.Client{Contexts: q.Context, SharedWrites: q.Writes == "allow"},
		firstOf(oneOf("context", q.Context, session.ContextsNew, session.ContextsEnvironment), oneOf("shared_writes", q.Writes, "refuse", "allow"))
}

// live serves the WebSocket of the live view.
func (h *cdpHandler) live(c *call) error {
	if err := h.urls.checkUpgrade(c); err != nil {
		return err
	}
	info, err := h.liveSession(c)
	if err != nil {
		return err
	}
	return h.sockets.view(c, info.ID)
}

// liveSession returns the session of the path, or an error if it has ended. Without this check a
// client would only see a socket that closes at once.
func (h *cdpHandler) liveSession(c *call) (answer.Info, error) {
	id, err := c.sessionID()
	if err != nil {
		return answer.Info{}, err
	}
	info, err := h.inspector.Get(c.Request().Context(), c.caller, id)
	if err != nil {
		return answer.Info{}, err
	}
	if info.Ended() {
		return answer.Info{}, fault.New(fault.SessionNotRunning, "api.cdp", "the session is %s", info.Status)
	}
	return info, nil
}

// browserVersion answers like Chrome's /json/version, with the session's WebSocket.
func (h *cdpHandler) browserVersion(c *call) error {
	info, err := h.liveSession(c)
	if err != nil {
		return err
	}
	product, protocol, agent, err := h.driver.BrowserVersion(c.Request().Context(), c.caller, info.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{
		"Browser": product, "Protocol-Version": protocol, "User-Agent": agent,
		"webSocketDebuggerUrl": h.urls.of(c.Request()).cdp(info.ID, "", info.Tickets[access.PurposeCDP]),
	})
}

type pageAnswer struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Title  string `json:"title"`
	URL    string `json:"url"`
	Socket string `json:"webSocketDebuggerUrl"`
}

// pages answers like Chrome's /json/list.
func (h *cdpHandler) pages(c *call) error {
	info, err := h.liveSession(c)
	if err != nil {
		return err
	}
	pages, err := h.driver.Pages(c.Request().Context(), c.caller, info.ID)
	if err != nil {
		return err
	}
	links, ticket := h.urls.of(c.Request()), info.Tickets[access.PurposeCDP]
	answers := make([]pageAnswer, 0, len(pages))
	for _, p := range pages {
		answers = append(answers, pageAnswer{p.ID, p.Type, p.Title, p.URL, links.cdp(info.ID, p.ID, ticket)})
	}
	return c.JSON(http.StatusOK, answers)
}
