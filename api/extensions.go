package api

import (
	"net/http"
	"time"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// maxExtensions is how many extensions one create may name.
const maxExtensions = 32

// extensionAnswer is an uploaded extension on the wire.
type extensionAnswer struct {
	ID        string    `json:"id"`
	UserID    string    `json:"user_id"`
	SHA256    string    `json:"sha256"`
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	SizeBytes int64     `json:"size_bytes"`
	CreatedAt time.Time `json:"created_at"`
}

func answerOfExtension(e profiles.Extension) extensionAnswer {
	return extensionAnswer{e.ID, e.UserID, e.SHA256, e.Name, e.Version, e.SizeBytes, e.CreatedAt.UTC()}
}

// putExtension stores the extension in the body, or in the one file of a form.
func (s *Server) putExtension(c *call) error {
	body, _, content, err := s.uploaded(c)
	if err != nil {
		return err
	}
	e, fresh, err := s.service.PutExtension(c.Request().Context(), c.caller, content)
	if err != nil {
		return body.explain(err, s.maxUpload)
	}
	status := http.StatusOK
	if fresh {
		status = http.StatusCreated
	}
	return c.JSON(status, answerOfExtension(e))
}

func (s *Server) listExtensions(c *call) error {
	list, err := s.service.ListExtensions(c.Request().Context(), c.caller)
	if err != nil {
		return err
	}
	answers := make([]extensionAnswer, 0, len(list))
	for _, e := range list {
		answers = append(answers, answerOfExtension(e))
	}
	return c.JSON(http.StatusOK, map[string]any{"extensions": answers})
}

func (s *Server) getExtension(c *call) error {
	id, err := c.id("extension_id", fault.ExtensionNotFound)
	if err != nil {
		return err
	}
	e, err := s.service.Extension(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answerOfExtension(e))
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
	if err := s.service.DeleteExtension(c.Request().Context(), c.caller, id, q.Force); err != nil {
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
