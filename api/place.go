package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/request"
)

// endedHeader says to the node that has passed a DELETE of all sessions on how many ended.
const endedHeader = "Stasis-Ended"

// maxNoAnswer bounds the body of a refusal that is looked at, in bytes.
const maxNoAnswer = 64 << 10

// placer chooses the node of a new session. A nil placer makes all sessions here.
type placer struct {
	cluster *Cluster
	urls    origins
	now     func() time.Time
}

func newPlacer(c *Cluster, urls origins, now func() time.Time) *placer {
	if c == nil {
		return nil
	}
	return &placer{c, urls, now}
}

// here reports whether a create is to be made on this node, because there are no others or
// another node has placed it here. For the latter, wait is how long it may wait for its environment.
func (p *placer) here(c *call) (here bool, wait time.Duration) {
	if p == nil {
		return true, 0
	}
	h, passed := forward.HopOf(c.Request().Context())
	return passed, h.Waits()
}

// made returns a create as it is made on this node. wait is how long it may wait for its
// environment. Without other nodes, it waits as it asks for.
func (p *placer) made(r request.Create, wait time.Duration) request.Create {
	if p == nil {
		return r
	}
	return r.Placed(wait)
}

// chosenID returns the ID for the session of a create that names none. The node to which the
// create came chooses it, so that the next node, or a repeat with the same Idempotency-Key, finds
// what another node may have made: one that loses its lease just then refuses a create that it has
// carried out. "": any.
func (p *placer) chosenID(c *call) string {
	if p == nil {
		return ""
	}
	if h, passed := forward.HopOf(c.Request().Context()); passed {
		return h.SessionID
	}
	return request.NewSessionID()
}

// isRefusal reports whether another node may take what this one has refused: it has no place,
// or does not answer. A call that may have been carried out is not repeated.
func isRefusal(err error) bool {
	return fault.Is(err, fault.TooManySessions) || isUnavailable(err)
}

func isUnavailable(err error) bool {
	return fault.Is(err, fault.ShuttingDown) || fault.Is(err, fault.NodeLost) || fault.Is(err, fault.NodeUnavailable) && forward.NotSent(err)
}

// refusal returns the error of an answer that refuses a create so that another node may take
// it, or that the create may wait; nil for all others, whose body can still be read.
func refusal(status int, body []byte) error {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return nil
	}
	var said errorAnswer
	if json.Unmarshal(body, &said) != nil {
		return nil
	}
	switch said.Code {
	case fault.TooManySessions, fault.ShuttingDown, fault.NodeLost:
		return fault.New(said.Code, "api.place", "%s", said.Message)
	case fault.QuotaExceeded:
		if said.Quota != nil && said.Quota.Name == quota.Sessions {
			return fault.Wrap(*said.Quota, said.Code, "api.place", said.Message)
		}
	}
	return nil
}

// refusedUpgrade is refusal for an answer that has not been read.
func refusedUpgrade(a *http.Response) error {
	if a.StatusCode != http.StatusTooManyRequests && a.StatusCode != http.StatusServiceUnavailable {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(a.Body, maxNoAnswer))
	if err != nil {
		return err
	}
	if err := refusal(a.StatusCode, body); err != nil {
		return err
	}
	a.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// createOn has another node make a session and returns its answer.
func (p *placer) createOn(c *call, to placement.Node, h forward.Hop, body []byte) (forward.Answer, error) {
	answer, err := p.cluster.Forwarder.Ask(c.Request(), to, p.urls.hop(c.Request(), h), http.MethodPost, c.Request().URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	return answer, refusal(answer.Status, answer.Body)
}

// get returns the answer of the node where a session lives to a GET of it. found is false if
// the session does not live on another node.
func (p *placer) get(c *call, id string) (_ forward.Answer, found bool, err error) {
	if p == nil || p.cluster.Lives(id) {
		return forward.Answer{}, false, nil
	}
	place, err := p.cluster.Peers.Refind(c.Request().Context(), id)
	if err != nil || place.Ended || place.NodeID == "" || place.NodeID == p.cluster.Peers.Self() {
		return forward.Answer{}, false, err
	}
	node, err := p.cluster.Peers.Node(c.Request().Context(), place.NodeID)
	if err != nil {
		return forward.Answer{}, false, err
	}
	answer, err := p.cluster.Forwarder.Ask(c.Request(), node, p.urls.hop(c.Request(), forward.Hop{Purpose: forward.ToSession}), http.MethodGet, "/v1/sessions/"+id, nil)
	return answer, true, err
}

// others asks all other nodes the same call, one after the other, and gives their answers to add.
// A node that was not taken over yet, although its lease has ended, is node_unavailable: its
// sessions may go on.
func (p *placer) others(c *call, add func(forward.Answer) error) error {
	if here, _ := p.here(c); here {
		return nil
	}
	nodes, err := p.cluster.Peers.Nodes(c.Request().Context())
	if err != nil {
		return err
	}
	var first error
	for _, n := range nodes {
		if n.ID == p.cluster.Peers.Self() || n.Number == 0 {
			continue
		}
		if !n.Leased() {
			first = cmp.Or(first, error(fault.New(fault.NodeUnavailable, "api.place", "node %s does not answer, and its sessions may continue; try again", n.ID)))
			continue
		}
		answer, err := p.cluster.Forwarder.Ask(c.Request(), n, p.urls.hop(c.Request(), forward.Hop{Purpose: forward.ToAll}), c.Request().Method, c.Request().URL.RequestURI(), nil)
		if err == nil {
			err = add(answer)
		}
		if err != nil && first == nil {
			first = err
		}
	}
	return first
}

// endedBy returns how many sessions a node has ended.
func endedBy(a forward.Answer) int {
	n, err := strconv.Atoi(a.Header.Get(endedHeader))
	if err != nil {
		return 0
	}
	return n
}

// keepBody returns the body of a call as far as it was read when the result is used.
func keepBody(c *call) *bytes.Buffer {
	kept := &bytes.Buffer{}
	r := c.Request()
	if hasBody(r) {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, kept), r.Body}
	}
	return kept
}

// placedHere reports whether another node has passed a call on that is not about one session.
func placedHere(c *call) bool {
	h, passed := forward.HopOf(c.Request().Context())
	return passed && h.Purpose != forward.ToSession
}

// placedClass returns how such a call is recorded: by the node to which the client has sent it,
// except for a socket, of which only this node knows the session. A create that has made a session
// changes the class again: it is recorded here, because the other node may not learn of it.
func placedClass(path string, class auditClass) auditClass {
	if path == "/v1/connect" {
		return class
	}
	return auditNever
}
