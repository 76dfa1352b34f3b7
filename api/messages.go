package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
)

// Messenger carries the conversation with the agent that drives a session.
type Messenger interface {
	// Send stores a message before it returns. Messages returns those after an ID.
	Send(ctx context.Context, c access.Caller, id string, m agent.MessageRequest) (agent.Message, error)
	Messages(ctx context.Context, c access.Caller, id string, after int64, secrets bool) (agent.Conversation, error)
	// Cancel reports whether a task was running.
	Cancel(ctx context.Context, c access.Caller, id string) (cancelled bool, err error)
}

var _ Messenger = (*agent.Messenger)(nil)

// messageHandler serves the conversation between a session's user and its agent.
type messageHandler struct {
	messenger   Messenger
	bodies      *bodyDecoder
	idempotency *idempotency
}

// maxMessageText limits the length of a message, in bytes.
const maxMessageText = 64 << 10

// messageBody is a message. config_updates is a known field, but Stasis has no
// configuration of agents to update.
type messageBody struct {
	Message  string                      `json:"message"`
	Type     string                      `json:"type"`
	StartURL string                      `json:"start_url"`
	Updates  map[string]unsupportedField `json:"config_updates"`
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

// messageMade is the answer to a message that was stored.
type messageMade struct {
	Success bool     `json:"success"`
	Message string   `json:"message"`
	ID      int64    `json:"id"`
	Ignored []string `json:"ignored_fields,omitempty"`
}

func (h *messageHandler) post(c *call) error {
	var body messageBody
	ignored, err := h.bodies.decode(c, &body)
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
	return h.idempotency.once(c, h.idempotency.hashOf([]any{id, body}), creation{
		make: func() (any, func() error, error) {
			sent, err := h.messenger.Send(c.Request().Context(), c.caller, id, agent.MessageRequest{Type: body.Type, Content: body.Message, StartURL: body.StartURL})
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

func (h *messageHandler) list(c *call) error {
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
	talk, err := h.messenger.Messages(c.Request().Context(), c.caller, id, q.After, !q.Sanitize)
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

func (h *messageHandler) cancel(c *call) error { return acknowledge(c, h.bodies, h.cancelTask) }

// cancelTask stops the task of a session's agent.
func (h *messageHandler) cancelTask(ctx context.Context, c access.Caller, id string) (answer.Acknowledgement, error) {
	cancelled, err := h.messenger.Cancel(ctx, c, id)
	answer := answer.Acknowledgement{Success: true, Status: "cancelled", Message: "no task is running; the browser keeps running"}
	if cancelled {
		answer.Message = "the task is cancelled; the browser keeps running"
	}
	return answer, err
}

// models answers clients that ask for agents: Stasis has none.
func models(c *call) error {
	var q struct {
		Filter string `json:"filter"`
	}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := oneOf("filter", q.Filter, "cdp", "desktop"); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string][]string{"models": {}})
}
