package api

import (
	"encoding/json"
	"net/http"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/agent"
)

// maxMessageText bounds a message, in bytes.
const maxMessageText = 64 << 10

// messageBody is a message. Updates of a configuration are known, and there is
// none here that could take one.
type messageBody struct {
	Message  string             `json:"message"`
	Type     string             `json:"type"`
	StartURL string             `json:"start_url"`
	Updates  map[string]unbuilt `json:"config_updates"`
}

func (b messageBody) check() error {
	if b.Message == "" {
		return invalid("message", "is required")
	}
	return firstOf(
		atMost("message", b.Message, maxMessageText),
		oneOf("type", b.Type, agent.MessageTypes...),
		isPageURL("start_url", b.StartURL),
	)
}

// messageMade is the answer of a message that was recorded.
type messageMade struct {
	Success bool     `json:"success"`
	Message string   `json:"message"`
	ID      int64    `json:"id"`
	Ignored []string `json:"ignored_fields,omitempty"`
}

func (s *Server) postMessage(c *call) error {
	var body messageBody
	ignored, err := s.body(c, &body)
	if err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	return s.once(c, s.hashOf([]any{id, body}), making{
		make: func() (any, func() error, error) {
			sent, err := s.messenger.Send(c.Request().Context(), c.caller, id, agent.MessageRequest{Type: body.Type, Content: body.Message, StartURL: body.StartURL})
			if err != nil {
				return nil, nil, err
			}
			answer := messageMade{true, "the message is recorded", sent.ID, ignored}
			return answer, func() error { return c.JSON(http.StatusOK, answer) }, nil
		},
		replay: func(data []byte) error {
			var answer messageMade
			if err := json.Unmarshal(data, &answer); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			return c.JSON(http.StatusOK, answer)
		},
	})
}

func (s *Server) listMessages(c *call) error {
	q := struct {
		After    int64 `json:"after_id"`
		Sanitize bool  `json:"sanitize"`
	}{Sanitize: true}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := within("after_id", q.After, 0, 1<<53); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	talk, err := s.messenger.Messages(c.Request().Context(), c.caller, id, q.After, !q.Sanitize)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		Messages []agent.Message `json:"messages"`
		HasMore  bool            `json:"has_more"`
		Status   string          `json:"status"`
		HasAgent bool            `json:"has_agent"`
	}{talk.Messages, talk.More, talk.Status.Status, talk.HasAgent})
}
