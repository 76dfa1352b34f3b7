package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/auditlog"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/request"
)

// slowSessions records each session that it creates, and then waits, as for start_url.
type slowSessions struct {
	Sessions
	nodes   *nodes
	made    chan string // gets the ID of each recorded session
	proceed chan struct{}
	busy    atomic.Int32 // how many repeats find that the first one is still running
}

func (s *slowSessions) Create(_ context.Context, _ access.Caller, r request.Create) (answer.Info, error) {
	id := cmp.Or(r.SessionID, "unnamed")
	existed := false
	s.nodes.set(func() {
		_, existed = s.nodes.places[id]
		s.nodes.places[id] = placement.Place{NodeID: "b"}
	})
	if existed && s.busy.Add(-1) >= 0 {
		return answer.Info{}, fault.New(fault.RequestInProgress, "fake", "")
	}
	i := info(id)
	if i.Existing = existed; !existed {
		s.made <- id
		<-s.proceed
	}
	return i, nil
}

// creates returns what the nodes have recorded of creates.
func (n *nodes) creates() (acts []auditlog.Act) {
	for _, r := range n.rigs {
		r.audit.mu.Lock()
		for _, a := range r.audit.acts {
			if a.Call == "createSession" {
				acts = append(acts, a)
			}
		}
		r.audit.mu.Unlock()
	}
	return acts
}

// A client goes while another node makes its session. A repeat on any node finds that session. The
// node that has made it has recorded that.
func TestClientLeavesAPlacedCreate(t *testing.T) {
	s := &slowSessions{made: make(chan string, 1), proceed: make(chan struct{})}
	n := newNodes(t, func(id string, o *Options) {
		if id == "b" {
			s.Sessions, o.Sessions = o.Sessions, s
		}
	}, "a", "c", "b")
	s.nodes = n
	a := n.rigs["a"]
	ctx, leave := context.WithCancel(t.Context())
	first, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/sessions", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	first.Header = http.Header{"X-Api-Key": {goodKey}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
	gone := make(chan error)
	go func() {
		answer, err := http.DefaultClient.Do(first)
		if err == nil {
			_ = answer.Body.Close()
		}
		gone <- err
	}()
	made := <-s.made
	leave()
	if err := <-gone; err == nil {
		t.Error("the client has an answer")
	}
	waitFor(t, func() bool { return len(n.creates()) == 1 }) // a does not know the outcome
	close(s.proceed)
	waitFor(t, func() bool { return len(n.creates()) == 2 })

	s.busy.Store(2)
	answer, body := n.rigs["c"].do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: k")
	if answer.StatusCode != http.StatusCreated || !strings.Contains(body, `"session_id":"`+made+`"`) {
		t.Errorf("the repeat: %d %s; want %s", answer.StatusCode, body, made)
	}
	var recorded []auditlog.Act
	for _, act := range n.creates() {
		if act.SessionID != made {
			t.Errorf("a create of the session %q is recorded: %+v", act.SessionID, act)
		}
		if act.Err == nil && act.Detail == "" {
			recorded = append(recorded, act)
		}
	}
	if len(recorded) != 1 || recorded[0].KeyID != caller().KeyID || recorded[0].UserID != "alice" || !recorded[0].Address.IsLoopback() {
		t.Errorf("recorded as made: %+v", recorded)
	}
}

// A create that another node makes is recorded once, by that node. One that it refuses is recorded
// by the node that has asked.
func TestPlacedCreatesAreRecordedOnce(t *testing.T) {
	n := newNodes(t, nil, "a", "b")
	a, b := n.rigs["a"], n.rigs["b"]
	for code, by := range map[fault.Code]*rig{"": b, fault.SnapshotNotFound: a} {
		b.fakeSessions.err = nil
		if code != "" {
			b.fakeSessions.err = fault.New(code, "fake", "")
		}
		a.do(t, "POST", "/v1/sessions", `{}`)
		acts := n.creates()
		if len(acts) != 1 || fault.CodeOf(acts[0].Err) != code || len(by.audit.taken()) != 1 {
			t.Errorf("%q: recorded %+v", code, acts)
		}
	}
}

// The ID of a session that was not made is not used again.
func TestFailedPlacedCreate(t *testing.T) {
	n := newNodes(t, nil, "a", "b")
	a, b := n.rigs["a"], n.rigs["b"]
	b.fakeSessions.err = fault.New(fault.BrowserFailed, "fake", "")
	a.do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: k")
	b.fakeSessions.err = nil
	if answer, body := a.do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: k"); answer.StatusCode != http.StatusCreated {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if len(b.creates) != 2 || b.creates[0].SessionID == "" || b.creates[0].SessionID == b.creates[1].SessionID {
		t.Errorf("created %+v", b.creates)
	}
}

// losingSessions records each create, and refuses it as a node that loses its lease does.
type losingSessions struct {
	Sessions
	asked chan string // gets the ID of each session
}

func (s *losingSessions) Create(_ context.Context, _ access.Caller, r request.Create) (answer.Info, error) {
	s.asked <- r.SessionID
	return answer.Info{}, fault.New(fault.NodeLost, "fake", "")
}

// A node may lose its lease when it has just recorded a session. The next node is asked for a
// session of the same ID, so that it finds that one and makes no second.
func TestCreateOfALostNode(t *testing.T) {
	lost := &losingSessions{asked: make(chan string, 1)}
	n := newNodes(t, func(id string, o *Options) {
		if id == "c" {
			lost.Sessions, o.Sessions = o.Sessions, lost
		}
	}, "a", "b", "c")
	a, b := n.rigs["a"], n.rigs["b"]
	answer, body := a.do(t, "POST", "/v1/sessions", `{}`)
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	if id := <-lost.asked; id == "" || len(b.creates) != 1 || b.creates[0].SessionID != id {
		t.Errorf("the first node was asked for %q, the next one for %+v", id, b.creates)
	}
}

// heldSessions refuses each create because another node has claimed its ID.
type heldSessions struct{ Sessions }

func (heldSessions) Create(context.Context, access.Caller, request.Create) (answer.Info, error) {
	return answer.Info{}, fault.New(fault.RequestInProgress, "fake", "session_id: another node has this session")
}

// While the lease of a lost node lasts in the catalogue, it has the ID of the create that it refused. The
// client has named no ID, and learns that a node was lost.
func TestCreateThatALostNodeHolds(t *testing.T) {
	n := newNodes(t, func(id string, o *Options) {
		if id == "c" {
			o.Sessions = &losingSessions{o.Sessions, make(chan string, 1)}
		} else {
			o.Sessions = heldSessions{o.Sessions}
		}
	}, "a", "b", "c")
	answer, body := n.rigs["a"].do(t, "POST", "/v1/sessions", `{}`)
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), string(fault.NodeLost)) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// A node that has its lease again since the list of nodes was read takes a create that no other one
// can take.
func TestCreateOnANodeThatIsBack(t *testing.T) {
	n := newNodes(t, nil, "a", "b")
	a, b := n.rigs["a"], n.rigs["b"]
	n.set(func() { n.node("a").Draining, n.node("b").Left = true, 0 })
	if answer, body := a.do(t, "POST", "/v1/sessions", `{}`); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without a node: %d %s", answer.StatusCode, body)
	}
	n.set(func() { n.node("b").Left = time.Minute })
	if answer, body := a.do(t, "POST", "/v1/sessions", `{}`); answer.StatusCode != http.StatusCreated || len(b.creates) != 1 {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}
