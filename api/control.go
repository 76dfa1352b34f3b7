package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/api/live"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/drive"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/request"
)

// Controls pauses and resumes live sessions.
type Controls interface {
	Pause(ctx context.Context, c access.Caller, id string) (answer.Acknowledgement, error)
	// Resume continues a session, from an older snapshot of it unless snapshotID is "".
	Resume(ctx context.Context, c access.Caller, id, snapshotID string) (answer.Acknowledgement, error)
}

// Driver drives the browsers of live sessions without a CDP client.
type Driver interface {
	Navigate(ctx context.Context, c access.Caller, id, url string) (currentURL string, err error)
	Screenshot(ctx context.Context, c access.Caller, id string) (drive.Screenshot, error)
	Pages(ctx context.Context, c access.Caller, id string) ([]drive.Page, error)
	BrowserVersion(ctx context.Context, c access.Caller, id string) (product, protocolVersion, userAgent string, err error)
}

var (
	_ Controls = (*session.Service)(nil)
	_ Driver   = (*drive.Driver)(nil)
)

// controlHandler watches and drives a live session without CDP.
type controlHandler struct {
	controls  Controls
	inspector Inspector
	driver    Driver
	bodies    *bodyDecoder
	urls      origins
	page      *live.Page
	placer    *placer
}

func (h *controlHandler) status(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	answer, err := h.inspector.Status(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

func (h *controlHandler) pause(c *call) error { return acknowledge(c, h.bodies, h.controls.Pause) }

// acknowledge handles a call without a body: it calls do for the session of the path and
// answers with the result.
func acknowledge(c *call, bodies *bodyDecoder, do func(context.Context, access.Caller, string) (answer.Acknowledgement, error)) error {
	if _, err := bodies.decode(c, &none{}); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	answer, err := do(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// resumedAnswer is the answer of resume: the acknowledgement, and what a client needs to
// connect.
type resumedAnswer struct {
	answer.Acknowledgement
	SessionID string  `json:"session_id"`
	CDPURL    *string `json:"cdp_url"` // null if the session has ended again
}

func (h *controlHandler) resume(c *call) error {
	var body struct {
		SnapshotID string `json:"snapshot_id"`
	}
	kept := keepBody(c)
	if _, err := h.bodies.decode(c, &body); err != nil {
		return err
	}
	if err := isID("snapshot_id", body.SnapshotID); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	c.audit.SnapshotID = body.SnapshotID
	local := func(time.Duration) error { return h.resumeHere(c, id, body.SnapshotID) }
	if here, _ := h.placer.here(c); here {
		return local(0)
	}
	asked := request.Create{SessionID: id, Resume: true}.GoingBackTo(body.SnapshotID)
	return h.placer.place(c, asked, local, func(to placement.Node, hop forward.Hop) error {
		answer, err := h.placer.createOn(c, to, hop, kept.Bytes())
		if err == nil {
			err = answer.Fault()
		}
		if err != nil {
			return err
		}
		var done resumedAnswer
		if err := json.Unmarshal(answer.Body, &done); err != nil {
			return fault.Wrap(err, fault.Internal, "api.resume", "the answer of another node cannot be read")
		}
		c.audit.Detail = done.Status
		return c.JSONBlob(http.StatusOK, answer.Body)
	})
}

// resumeHere resumes a session on this node.
func (h *controlHandler) resumeHere(c *call, id, snapshotID string) error {
	done, err := h.controls.Resume(c.Request().Context(), c.caller, id, snapshotID)
	if err != nil {
		return err
	}
	info, err := h.inspector.Get(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	c.audit.created(info)
	c.audit.Detail = done.Status
	return c.JSON(http.StatusOK, resumedAnswer{done, id, h.urls.sessionAnswer(c.Request(), info).CDPURL})
}

func (h *controlHandler) navigate(c *call) error {
	var body struct {
		URL string `json:"url"`
	}
	if _, err := h.bodies.decode(c, &body); err != nil {
		return err
	}
	if body.URL == "" {
		return invalid("url", "is required")
	}
	if err := isPageURL("url", body.URL); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	current, err := h.driver.Navigate(c.Request().Context(), c.caller, id, body.URL)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"current_url": current})
}

func (h *controlHandler) screenshot(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	shot, err := h.driver.Screenshot(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{
		"screenshot": "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(shot.JPEG),
		"url":        shot.URL,
		"title":      shot.Title,
	})
}

// livePage serves the page of the live view; cdpHandler.live serves its WebSocket.
func (h *controlHandler) livePage(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	if _, err := h.inspector.Get(c.Request().Context(), c.caller, id); err != nil {
		return err
	}
	return h.page.Write(c.Response())
}
