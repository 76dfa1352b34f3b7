package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// A socket that is passed on counts as one connection while it lasts. Connections without a key
// do not close it, by a key or by a ticket.
func TestPassedSocketsAreCounted(t *testing.T) {
	const most = 2
	for name, query := range map[string]string{"key": "", "ticket": "?ticket=" + hopTicket} {
		t.Run(name, func(t *testing.T) {
			n := newNodes(t, func(id string, o *Options) {
				if id == "a" {
					o.MaxConnections, o.Grace = most, time.Millisecond
				}
			}, "a", "b")
			a := n.rigs["a"]
			n.rigs["b"].serve = func(ctx context.Context, conn session.Conn) error {
				_, err := conn.Read(ctx)
				return err
			}
			a.serving(t)
			open := func() *websocket.Conn {
				header := withKey
				if query != "" {
					header = nil
				}
				ws, answer, body, err := dial(t, a.url+"/v1/sessions/"+liveID+"/cdp"+query, header)
				if err != nil {
					t.Fatal(answer.StatusCode, body, err)
				}
				return ws
			}
			for range 3 {
				_ = open().CloseNow()
				waitFor(t, func() bool { open, waiting := a.tracked(); return open == 0 && waiting == 0 })
			}
			ws := open()
			for range 3 * most {
				a.raw(t, "")
				answer := a.raw(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
				if _, err := answer.Read(make([]byte, 20)); err != nil {
					t.Fatal(err)
				}
			}
			gone := ws.CloseRead(t.Context()) // reads the answer to the ping
			if err := ws.Ping(t.Context()); err != nil {
				t.Errorf("the socket was cut off: %v, %v", err, context.Cause(gone))
			}
			if open, waiting := a.tracked(); open > most || waiting >= open {
				t.Errorf("%d connections are open, and %d of them wait", open, waiting)
			}
		})
	}
}

// A call about a session on another node is passed on only with a valid key, or with what can be
// a ticket. Others are refused here, and say nothing of the session.
func TestKeysAreCheckedBeforeTheHop(t *testing.T) {
	n := newNodes(t, nil, "a", "b")
	a := n.rigs["a"]
	n.set(func() { n.node("b").Left = -1 }) // what is passed on is node_unavailable, after a second look
	for name, x := range map[string]struct {
		method, path, header string
		status, reads        int
	}{
		"a valid key":             {"GET", "/v1/sessions/" + liveID, "", http.StatusServiceUnavailable, 2},
		"a wrong key":             {"GET", "/v1/sessions/" + liveID, "Authorization: Bearer x", http.StatusUnauthorized, 0},
		"no key":                  {"GET", "/v1/sessions/" + liveID, "Authorization: ", http.StatusUnauthorized, 0},
		"a ticket for a key":      {"GET", "/v1/sessions/" + liveID + "?ticket=" + hopTicket, "Authorization: ", http.StatusUnauthorized, 0},
		"a ticket":                {"GET", "/v1/sessions/" + liveID + "/json/list?ticket=" + hopTicket, "Authorization: ", http.StatusServiceUnavailable, 2},
		"what cannot be a ticket": {"GET", "/v1/sessions/" + liveID + "/json/list?ticket=x", "Authorization: ", http.StatusUnauthorized, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a.server.cluster.Peers = placement.NewPeers("a", n, time.Now) // remembers nothing
			n.set(func() { n.reads = 0 })
			answer, body := a.do(t, x.method, x.path, "", x.header)
			if answer.StatusCode != x.status || n.reads != x.reads {
				t.Errorf("%d %s after %d looks at the catalogue; want %d after %d", answer.StatusCode, body, n.reads, x.status, x.reads)
			}
		})
	}
}

// A node whose clock is wrong, and which therefore refuses calls of other nodes, gets no creates
// although it has the most room. Calls about its sessions say why they fail.
func TestNodeWithAWrongClock(t *testing.T) {
	n := newNodes(t, func(id string, o *Options) {
		if id == "b" {
			o.Now = func() time.Time { return time.Now().Add(2 * time.Minute) }
		}
	}, "a", "c", "b")
	a := n.rigs["a"]
	if answer, body := a.do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: k"); answer.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	if b, c := len(n.rigs["b"].creates), len(n.rigs["c"].creates); b != 0 || c != 1 {
		t.Errorf("created %d times on the node with the wrong clock, and %d times on the other", b, c)
	}
	if answer, body := a.do(t, "GET", "/v1/sessions/"+liveID, ""); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "node_unavailable") || !strings.Contains(body, "clocks differ") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if _, answer, body, err := dial(t, a.url+"/v1/sessions/"+liveID+"/cdp", withKey); err == nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get(forward.Header) != "" {
		t.Errorf("a socket: %d %s", answer.StatusCode, body)
	}
	if answer, body := a.do(t, "GET", "/v1/me", "", forward.Header+": forged"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a client with the header: %d %s", answer.StatusCode, body)
	}
}

// Keys are not sent to a URL that somebody else has written into the catalogue.
func TestForeignURL(t *testing.T) {
	n := newNodes(t, nil, "a", "b")
	a := n.rigs["a"]
	caught := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.URL, r.Header) }))
	t.Cleanup(caught.Close)
	n.set(func() { n.node("b").URL = caught.URL })
	if answer, body := a.do(t, "GET", "/v1/sessions/"+liveID, ""); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "not signed") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if answer, body := a.do(t, "POST", "/v1/sessions", `{}`); answer.StatusCode != http.StatusCreated || len(a.creates) != 1 {
		t.Errorf("a create: %d %s", answer.StatusCode, body)
	}
}

// A DELETE of all sessions asks all other nodes. It does not say success while one is late.
func TestDeleteOnAllNodes(t *testing.T) {
	n := newNodes(t, nil, "a", "late", "stopped", "b")
	a := n.rigs["a"]
	n.set(func() { n.node("stopped").Number = 0 })
	if answer, body := a.do(t, "DELETE", "/v1/sessions", ""); answer.StatusCode != http.StatusOK || len(n.rigs["b"].endedUsers) != 1 || len(n.rigs["late"].endedUsers) != 1 {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	n.set(func() { n.node("late").Left = -1 })
	a.server.cluster.Peers = placement.NewPeers("a", n, time.Now) // reads them again
	if answer, body := a.do(t, "DELETE", "/v1/sessions", ""); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "node late") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if asked := len(n.rigs["b"].endedUsers); asked != 2 {
		t.Errorf("b was asked %d times", asked)
	}
}

// movingCheckpoints refuse checkpoints because the session begins to move.
type movingCheckpoints struct{ Checkpoints }

func (movingCheckpoints) Checkpoint(context.Context, access.Caller, string, request.Checkpoint) (save.CheckpointAnswer, error) {
	return save.CheckpointAnswer{}, session.ErrMoving
}

// A call that cannot be repeated on the new node of its session is recorded here.
func TestMovingIsRecorded(t *testing.T) {
	n := newNodes(t, func(_ string, o *Options) { o.Checkpoints = movingCheckpoints{o.Checkpoints} }, "a")
	a := n.rigs["a"]
	a.audit.taken()
	answer, text := a.do(t, "POST", "/v1/sessions/"+liveID+"/snapshots", "{"+strings.Repeat(" ", keptBody)+"}")
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if acts := a.audit.taken(); len(acts) != 1 || !errors.Is(acts[0].Err, session.ErrMoving) {
		t.Errorf("recorded: %+v", acts)
	}
}

// drains drains nodes of a test.
type drains struct {
	*placement.Admin
	of *fakeNodes
}

func (d *drains) Drain(_ context.Context, _ access.Caller, id string, draining bool) error {
	d.of.set(func() { d.of.node(id).Draining = draining })
	return nil
}

// A create goes to no node that was drained through the same node before, although that node has
// just read the list of nodes.
func TestDrainThroughThisNode(t *testing.T) {
	d := &drains{}
	n := newNodes(t, func(_ string, o *Options) { o.Nodes = d }, "a", "b")
	d.of = n.fakeNodes
	a, b := n.rigs["a"], n.rigs["b"]
	create := func() {
		t.Helper()
		if answer, body := a.do(t, "POST", "/v1/sessions", `{}`); answer.StatusCode != http.StatusCreated {
			t.Fatalf("%d %s", answer.StatusCode, body)
		}
	}
	create()
	if answer, body := a.do(t, "POST", "/v1/nodes/b/drain", ""); answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
	create()
	if len(a.creates) != 1 || len(b.creates) != 1 {
		t.Errorf("%d sessions on a and %d on b, want 1 and 1", len(a.creates), len(b.creates))
	}
}
