package api

import (
	"context"
	"net/http"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/snapshot"
)

// Documents stores the documents of agents, byte for byte. An error about a scope, an ID or
// a body names it.
type Documents interface {
	MaySave(ctx context.Context, c access.Caller, at agent.Scope) error
	SaveDocument(ctx context.Context, c access.Caller, at agent.Scope, id string, body []byte, latest bool) error
	Document(ctx context.Context, c access.Caller, at agent.Scope, id string) ([]byte, error)
	DocumentIDs(ctx context.Context, c access.Caller, at agent.Scope, limit int, startAfter string) (ids []string, next string, err error)
	DeleteDocument(ctx context.Context, c access.Caller, at agent.Scope, id string) error
	Manifest(ctx context.Context, c access.Caller, at agent.Scope) ([]byte, error)
	SaveManifest(ctx context.Context, c access.Caller, at agent.Scope, body []byte) error
	// DeleteDocuments removes all documents of a session. It is idempotent.
	DeleteDocuments(ctx context.Context, c access.Caller, sessionID string) error
}

var _ Documents = (*agent.Documents)(nil)

// documentHandler stores and serves the documents of agents.
type documentHandler struct {
	documents Documents
	bodies    *bodyDecoder
}

type documentsAnswer struct {
	SnapshotIDs []string `json:"snapshot_ids"`
	NextToken   *string  `json:"next_token"`
}

// agentScope returns the scope of documents that the path names. The store checks the parts
// of the scope and names them in its errors.
func (c *call) agentScope() (at agent.Scope, err error) {
	if at.SessionID, err = c.param("session_id"); err != nil {
		return at, err
	}
	if at.Scope, err = c.param("scope"); err != nil {
		return at, err
	}
	at.ScopeID, err = c.param("scope_id")
	return at, err
}

// document returns the scope and the document ID that the path names.
func (c *call) document() (at agent.Scope, id string, err error) {
	if at, err = c.agentScope(); err != nil {
		return at, "", err
	}
	id, err = c.param("snapshot_id")
	return at, id, err
}

func (h *documentHandler) put(c *call) error {
	var q struct {
		Latest *bool `json:"latest"`
	}
	if err := c.query(&q); err != nil {
		return err
	}
	at, id, err := c.document()
	if err != nil {
		return err
	}
	if id == snapshot.LatestID && q.Latest != nil && !*q.Latest {
		return invalid("latest", "must not be false if the path names latest")
	}
	body, err := h.read(c, at)
	if err != nil {
		return err
	}
	latest := q.Latest != nil && *q.Latest
	if err := h.documents.SaveDocument(c.Request().Context(), c.caller, at, id, body, latest); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// read reads a document, if the caller may save it, and returns it byte for byte. For a
// document that is too large it returns one byte more than is allowed, and the store
// refuses it.
func (h *documentHandler) read(c *call, at agent.Scope) ([]byte, error) {
	if err := checkJSONType(c.Request().Header.Get("Content-Type"), "application/json"); err != nil {
		return nil, err
	}
	if err := h.documents.MaySave(c.Request().Context(), c.caller, at); err != nil {
		return nil, err
	}
	data, err := h.bodies.readAll(c, c.Request().Body, snapshot.MaxAgentDocument)
	return data, bodyError("api.documents", err)
}

func (h *documentHandler) get(c *call) error {
	at, id, err := c.document()
	if err != nil {
		return err
	}
	body, err := h.documents.Document(c.Request().Context(), c.caller, at, id)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, body)
}

func (h *documentHandler) delete(c *call) error {
	at, id, err := c.document()
	if err != nil {
		return err
	}
	if err := h.documents.DeleteDocument(c.Request().Context(), c.caller, at, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (h *documentHandler) list(c *call) error {
	q := firstPage()
	if err := c.query(&q); err != nil {
		return err
	}
	if q.StartAfter != "" && snapshot.CheckDocumentID(q.StartAfter) != nil {
		return invalid("start_after", "must be a snapshot ID, a UUID in lower case")
	}
	if err := q.check(); err != nil {
		return err
	}
	at, err := c.agentScope()
	if err != nil {
		return err
	}
	ids, next, err := h.documents.DocumentIDs(c.Request().Context(), c.caller, at, int(q.Limit), q.StartAfter)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, documentsAnswer{SnapshotIDs: append([]string{}, ids...), NextToken: answer.OrNull(next)})
}

func (h *documentHandler) getManifest(c *call) error {
	at, err := c.agentScope()
	if err != nil {
		return err
	}
	body, err := h.documents.Manifest(c.Request().Context(), c.caller, at)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, body)
}

func (h *documentHandler) putManifest(c *call) error {
	at, err := c.agentScope()
	if err != nil {
		return err
	}
	body, err := h.read(c, at)
	if err != nil {
		return err
	}
	if err := h.documents.SaveManifest(c.Request().Context(), c.caller, at, body); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (h *documentHandler) deleteAll(c *call) error {
	id, err := c.param("session_id")
	if err != nil {
		return err
	}
	if err := h.documents.DeleteDocuments(c.Request().Context(), c.caller, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
