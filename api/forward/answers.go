package forward

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
)

// Health is the answer to a call of ToAnswer or ToTry.
type Health struct {
	Status string `json:"status"` // Healthy
	// Unreached says to the node that made a call of ToTry why it was not reached; "": it was.
	Unreached string `json:"unreached,omitempty"`
}

// Healthy is the Status of a node that answers.
const Healthy = "ok"

// healthPath is the path of calls of ToAnswer and ToTry. A node of a version without these
// purposes answers it as it answers any client.
const healthPath = "/healthz"

// Answers returns nil if a node answers a call of this one at its URL and accepts such calls. The
// error is node_unavailable, and its message the cause.
func (f *Forwarder) Answers(ctx context.Context, to placement.Node) error {
	_, err := f.health(ctx, to, ToAnswer)
	return err
}

// TryBack has a node call this one. unreached says why it has not reached this one; "": it has. The
// error is that of the call to the other node, as of Answers.
func (f *Forwarder) TryBack(ctx context.Context, by placement.Node) (unreached string, err error) {
	h, err := f.health(ctx, by, ToTry)
	return h.Unreached, err
}

// health makes a call of this node itself, without credentials.
func (f *Forwarder) health(ctx context.Context, to placement.Node, why Purpose) (h Health, err error) {
	const op = "forward.answers"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.URL+healthPath, nil)
	if err != nil {
		return h, fault.Wrap(err, fault.NodeUnavailable, op, "the URL of node "+to.ID+" is malformed")
	}
	answer, err := f.Ask(r, to, Hop{Purpose: why}, http.MethodGet, healthPath, nil)
	if err != nil {
		return h, fault.Wrap(err, fault.NodeUnavailable, op, causeOf(ctx, err))
	}
	if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &h) != nil || h.Status != Healthy {
		return h, fault.New(fault.NodeUnavailable, op, "what answers at this URL is not node %s", to.ID)
	}
	return h, nil
}

// causeOf returns why a call of this node itself failed, for people. What Ask says is for clients.
func causeOf(ctx context.Context, err error) string {
	var joined interface{ Unwrap() []error }
	switch {
	case ctx.Err() != nil:
		return "no answer in time"
	case errors.As(err, &joined):
		causes := joined.Unwrap()
		return causes[len(causes)-1].Error()
	}
	return fault.MessageOf(err)
}
