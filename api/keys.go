package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// newKeyAnswer tells the secret, which is null in the answer to a repeat.
type newKeyAnswer struct {
	access.Key
	Secret *string `json:"secret"`
}

func (s *Server) me(c *call) error {
	return c.JSON(http.StatusOK, map[string]any{
		"key_id": c.caller.KeyID, "user_id": c.caller.UserID,
		"all_users": c.caller.AllUsers, "rights": c.caller.Rights,
	})
}

func (s *Server) listKeys(c *call) error {
	keys, err := s.keys.Keys(c.Request().Context(), c.caller)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"keys": keys})
}

type keyBody struct {
	Name     string         `json:"name"`
	UserID   string         `json:"user_id"`
	AllUsers bool           `json:"all_users"`
	Rights   []access.Right `json:"rights"`
}

// rightNames are the rights that a key may be given.
func rightNames() []string {
	var names []string
	for _, r := range access.Rights() {
		names = append(names, string(r))
	}
	return names
}

func (b *keyBody) check() error {
	if b.Name == "" {
		return invalid("name", "is required")
	}
	if len(b.Rights) == 0 {
		return invalid("rights", "must not be empty")
	}
	for i, r := range b.Rights {
		field := fmt.Sprintf("rights[%d]", i)
		if err := oneOf(field, string(r), rightNames()...); err != nil {
			return err
		}
		if slices.Contains(b.Rights[:i], r) {
			return invalid(field, "is given twice")
		}
	}
	return firstOf(atMost("name", b.Name, 128), isUserID("user_id", b.UserID))
}

func (s *Server) createKey(c *call) error {
	body := keyBody{UserID: c.caller.UserID, Rights: []access.Right{access.RightUse}}
	if _, err := s.body(c, &body); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	return s.once(c, s.hashOf(body), making{
		make: func() (any, func() error, error) {
			key, secret, err := s.keys.CreateKey(c.Request().Context(), c.caller, body.Name, body.UserID, body.AllUsers, body.Rights)
			if err != nil {
				return nil, nil, err
			}
			return key, func() error { return c.JSON(http.StatusCreated, newKeyAnswer{key, &secret}) }, nil
		},
		replay: func(data []byte) error {
			var made access.Key
			if err := json.Unmarshal(data, &made); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			return c.JSON(http.StatusCreated, newKeyAnswer{made, nil})
		},
	})
}

func (s *Server) deleteKey(c *call) error {
	id, err := c.id("key_id", fault.KeyNotFound)
	if err != nil {
		return err
	}
	if err := s.keys.DeleteKey(c.Request().Context(), c.caller, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
