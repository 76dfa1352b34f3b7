package api

import (
	"net/http"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
)

// maxExtensions is how many extensions one create may name.
const maxExtensions = 32

// putExtension stores the extension in the body, or in the one file of a form.
func (s *Server) putExtension(c *call) error {
	body, _, content, err := s.uploaded(c)
	if err != nil {
		return err
	}
	e, fresh, err := s.extensions.PutExtension(c.Request().Context(), c.caller, content)
	if err != nil {
		return body.explain(err, s.maxUpload)
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	return c.JSON(status, e)
}

func (s *Server) listExtensions(c *call) error {
	list, err := s.extensions.ListExtensions(c.Request().Context(), c.caller)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"extensions": list})
}

func (s *Server) getExtension(c *call) error {
	id, err := c.id("extension_id", fault.ExtensionNotFound)
	if err != nil {
		return err
	}
	e, err := s.extensions.Extension(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, e)
}

func (s *Server) deleteExtension(c *call) error {
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
	if err := s.extensions.DeleteExtension(c.Request().Context(), c.caller, id, q.Force); err != nil {
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
