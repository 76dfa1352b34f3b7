package api

import (
	"context"
	"io"
	"net/http"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
)

// Extensions stores the extensions that users upload.
type Extensions interface {
	// PutExtension stores the zip or .crx that it reads from r. fresh is false if the
	// caller's user already has the same extension.
	PutExtension(ctx context.Context, c access.Caller, r io.Reader) (e library.Extension, fresh bool, err error)
	ListExtensions(ctx context.Context, c access.Caller) ([]library.Extension, error)
	Extension(ctx context.Context, c access.Caller, id string) (library.Extension, error)
	DeleteExtension(ctx context.Context, c access.Caller, id string, force bool) error
}

var _ Extensions = (*library.Extensions)(nil)

// extensionHandler answers /v1/extensions.
type extensionHandler struct {
	extensions Extensions
	maxUpload  int64 // bytes of one file
}

// maxExtensions is how many extensions one create may name.
const maxExtensions = 32

// put stores the extension in the body, or in the only file of a form.
func (h *extensionHandler) put(c *call) error {
	body, _, content, err := uploaded(c, h.maxUpload)
	if err != nil {
		return err
	}
	e, fresh, err := h.extensions.PutExtension(c.Request().Context(), c.caller, content)
	if err != nil {
		return body.explain(err, h.maxUpload)
	}
	c.audit.Object = e.ID
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	return c.JSON(status, e)
}

func (h *extensionHandler) list(c *call) error {
	c.audit.listing(c, "")
	list, err := h.extensions.ListExtensions(c.Request().Context(), c.caller)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"extensions": list})
}

func (h *extensionHandler) get(c *call) error {
	id, err := c.id("extension_id", fault.ExtensionNotFound)
	if err != nil {
		return err
	}
	e, err := h.extensions.Extension(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, e)
}

func (h *extensionHandler) delete(c *call) error {
	var q struct {
		Force bool `json:"force"`
	}
	if err := c.query(&q); err != nil {
		return err
	}
	id, err := c.id("extension_id", fault.ExtensionNotFound)
	if err != nil {
		return err
	}
	if err := h.extensions.DeleteExtension(c.Request().Context(), c.caller, id, q.Force); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// areExtensions checks the extensions of a create.
func areExtensions(ids []string) error {
	if len(ids) > maxExtensions {
		return invalid("extensions", "must be at most %d", maxExtensions)
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if !extension.IsID(id) || seen[id] {
			return invalid("extensions", "must be IDs of 32 letters from a to p, each once, not %s", quoted(id))
		}
		seen[id] = true
	}
	return nil
}
