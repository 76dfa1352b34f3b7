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
	Send(ctx context.Context, c access.Caller, id string, m agent.MessageRequest) (agent.Sent, error)
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

const (
	maxMessageText = 64 << 10  // bytes of a message, and of a tool call's arguments
	maxToolResult  = 256 << 10 // bytes of a tool call's result, as JSON
	maxToolName    = 256
)

// messageBody is a message. config_updates is a known field, but Stasis has no
// configuration of agents to update.
type messageBody struct {
	Message   anyValue                    `json:"message"`
	Type      string                      `json:"type"`
	Name      string                      `json:"name"`
	Arguments anyValue                    `json:"arguments"`
	Result    anyValue                    `json:"result"`
	StartURL  string                      `json:"start_url"`
	Updates   map[string]unsupportedField `json:"config_updates"`
}

// request checks the message and converts it for package agent.
func (b messageBody) request() (agent.MessageRequest, error) {
	r := agent.MessageRequest{Type: b.Type, StartURL: b.StartURL}
	if err := firstOf(oneOf("type", b.Type, agent.MessageTypes...), b.checkText(&r), isPageURL("start_url", b.StartURL)); err != nil {
		return r, err
	}
	if b.Type == agent.TypeTool {
		var err error
		r.Tool, err = b.tool()
		return r, err
	}
	return r, firstOf(onlyForTools("name", b.Name != ""), onlyForTools("arguments", b.Arguments.given()), onlyForTools("result", b.Result.given()))
}

func onlyForTools(field string, given bool) error {
	if given {
		return invalid(field, "is allowed only with type TOOL")
	}
	return nil
}

// checkText checks the text of the message, and sets it in r. DONE may have an object, and
// TOOL needs no text.
func (b messageBody) checkText(r *agent.MessageRequest) error {
	switch v := b.Message.value.(type) {
	case string:
		if r.Content = v; v == "" {
			return invalid("message", "must not be empty")
		}
	case nil:
		if b.Type != agent.TypeTool {
			return invalid("message", "is required")
		}
	case object:
		if b.Type != agent.TypeDone {
			return invalid("message", "must be a string; only a message with type DONE may have an object")
		}
		text, err := b.Message.raw()
		if err != nil {
			return err
		}
		r.Content, r.Object = string(text), true
	default:
		return fault.New(fault.InvalidRequest, "api.bind", "message: must be a string, or an object with type DONE, not %s", describe(v))
	}
	return atMost("message", r.Content, maxMessageText)
}

// tool returns the tool call of a message with type TOOL.
func (b messageBody) tool() (*agent.ToolCall, error) {
	if b.Name == "" {
		return nil, invalid("name", "is required with type TOOL: the name of the tool that was called")
	}
	if _, ok := b.Arguments.value.(object); b.Arguments.given() && !ok {
		return nil, fault.New(fault.InvalidRequest, "api.bind", "arguments: must be an object, not %s", describe(b.Arguments.value))
	}
	arguments, err := b.Arguments.raw()
	if err != nil {
		return nil, err
	}
	result, err := b.Result.raw()
	if err != nil {
		return nil, err
	}
	return &agent.ToolCall{Name: b.Name, Arguments: arguments, Result: result}, firstOf(
		atMost("name", b.Name, maxToolName), atMost("arguments", string(arguments), maxMessageText), atMost("result", string(result), maxToolResult))
}

// messageMade is the answer to a message that was stored.
type messageMade struct {
	Success  bool     `json:"success"`
	Message  string   `json:"message"`
	ID       int64    `json:"id"`
	HasAgent bool     `json:"has_agent"`
	Ignored  []string `json:"ignored_fields,omitempty"`
}

func (h *messageHandler) post(c *call) error {
	var body messageBody
	ignored, err := h.bodies.decode(c, &body)
	if err != nil {
		return err
	}
	message, err := body.request()
	if err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	return h.idempotency.once(c, h.idempotency.hashOf([]any{id, body}), creation{
		make: func() (any, func() error, error) {
			sent, err := h.messenger.Send(c.Request().Context(), c.caller, id, message)
			if err != nil {
				return nil, nil, err
			}
			answer := messageMade{true, "the message is recorded", sent.ID, sent.HasAgent, ignored}
			if !sent.HasAgent && body.Type == "" {
				answer.Message = "the message is recorded; no agent follows the session yet, and one that comes gets it"
			}
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
	if !q.Sanitize {
		c.audit.secrets()
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
	answer := answer.Acknowledgement{Success: true, Status: "cancelled", Message: "no task was running, so nothing was cancelled; the browser keeps running"}
	if cancelled {
		answer.Message = "the agent's task was cancelled; the browser keeps running"
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
