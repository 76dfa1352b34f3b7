package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/placement"
)

func TestReach(t *testing.T) {
	for route, want := range map[[2]string]reach{
		{"GET", "/v1/sessions"}:                                     reachNone,
		{"GET", "/v1/snapshots/:snapshot_id"}:                       reachNone,
		{"GET", "/v1/sessions/:session_id"}:                         reachLive,
		{"DELETE", "/v1/sessions/:session_id"}:                      reachLast,
		{"GET", "/v1/sessions/:session_id/cdp"}:                     reachLive,
		{"GET", "/v1/sessions/:session_id/live/socket"}:             reachLive,
		{"GET", "/v1/sessions/:session_id/events"}:                  reachLive,
		{"GET", "/v1/sessions/:session_id/files/:name"}:             reachLast,
		{"POST", "/v1/sessions/:session_id/files"}:                  reachLive,
		{"POST", "/v1/sessions/:session_id/snapshots"}:              reachLive,
		{"GET", "/v1/sessions/:session_id/snapshots"}:               reachNone,
		{"PUT", "/v1/sessions/:session_id/scopes/:scope/:scope_id"}: reachNone,
	} {
		if got := reachOf(route[0], route[1]); got != want {
			t.Errorf("%s %s: %d, not %d", route[0], route[1], got, want)
		}
	}
}

// movedSession is a catalogue with a session that was resumed on this node, b, after its node has
// died.
type movedSession struct{ at string }

func (movedSession) Nodes(context.Context) ([]profiles.Node, error) {
	return []profiles.Node{{ID: "a", URL: "http://a"}, {ID: "b", URL: "http://b", Number: 2, Left: time.Minute}}, nil
}

func (m *movedSession) NodeOf(context.Context, string) (profiles.Place, error) {
	return profiles.Place{NodeID: m.at}, nil
}

// What a node remembers of a session may be older than its resume on another node. The catalogue
// is asked before a call is refused because the remembered node is dead.
func TestMovedFromDeadNode(t *testing.T) {
	catalogue := &movedSession{at: "a"}
	no := func(string) bool { return false }
	s := &Server{now: time.Now, cluster: &Cluster{Peers: placement.NewPeers("b", catalogue, time.Now), Lives: no, Moving: no}}
	r := httptest.NewRequest(http.MethodGet, "/v1/sessions/s1?ticket=t", nil)
	c := &call{Context: echo.New().NewContext(r, httptest.NewRecorder())}
	c.SetParamNames("session_id")
	c.SetParamValues("s1")
	if _, err := s.passOn(c, reachLive); !fault.Is(err, fault.NodeUnavailable) {
		t.Errorf("while the session is on the dead node: %v", err)
	}
	catalogue.at = "b"
	if done, err := s.passOn(c, reachLive); done || err != nil {
		t.Errorf("after the resume: %t, %v; want that this node answers", done, err)
	}
}

// movingOn is a catalogue with a session that has moved to this node, b, from a node that has just
// stopped. What is remembered of both is older.
type movingOn struct{ asked int }

func (*movingOn) Nodes(context.Context) ([]profiles.Node, error) {
	return []profiles.Node{{ID: "a", URL: "http://a", Number: 1, Left: time.Minute}, {ID: "b", URL: "http://b", Number: 2, Left: time.Minute}}, nil
}

func (m *movingOn) NodeOf(context.Context, string) (profiles.Place, error) {
	if m.asked++; m.asked == 1 {
		return profiles.Place{NodeID: "a"}, nil
	}
	return profiles.Place{NodeID: "b"}, nil
}

// A call that could not be sent to the node that is remembered is made where the session is now.
func TestMovedFromStoppedNode(t *testing.T) {
	no := func(string) bool { return false }
	peers := placement.NewPeers("b", &movingOn{}, time.Now)
	// The URL of node a is not signed, so nothing is sent.
	f := forward.New(forward.Config{Signer: forward.NewSigner("b", []byte("shared"), time.Now), Nodes: peers, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(f.Close)
	s := &Server{now: time.Now, connections: newConnections(1), cluster: &Cluster{Peers: peers, Forwarder: f, Lives: no, Moving: no}}
	c := &call{Context: echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/v1/sessions/s1", nil), httptest.NewRecorder())}
	c.SetParamNames("session_id")
	c.SetParamValues("s1")
	if done, err := s.passOn(c, reachLive); done || err != nil {
		t.Errorf("%t, %v; want that this node answers", done, err)
	}
}

// A call whose session begins to move while it is answered is made again, with its body. A call
// whose body is not kept is refused.
func TestWhileMoving(t *testing.T) {
	no := func(string) bool { return false }
	s := &Server{now: time.Now, cluster: &Cluster{Peers: placement.NewPeers("b", &movedSession{at: "b"}, time.Now), Lives: func(string) bool { return true }, Moving: no}}
	for _, size := range []int{0, 3, keptBody, keptBody + 1} {
		r := httptest.NewRequest(http.MethodPost, "/v1/sessions/s1/snapshots", strings.NewReader(strings.Repeat("x", size)))
		if size == 0 {
			r.Body = http.NoBody
		}
		c := &call{Context: echo.New().NewContext(r, httptest.NewRecorder())}
		c.SetParamNames("session_id")
		c.SetParamValues("s1")
		var read []int
		err := s.whileMoving(c, reachLive, nil, func() error {
			body, err := io.ReadAll(c.Request().Body)
			if read = append(read, len(body)); len(read) < 3 || err != nil {
				return errors.Join(err, session.ErrMoving)
			}
			return nil
		})
		want, again := []int{size, size, size}, error(nil)
		if size > keptBody {
			want, again = want[:1], session.ErrMoving
		}
		if !slices.Equal(read, want) || !errors.Is(err, again) {
			t.Errorf("a body of %d bytes was read as %d, %v", size, read, err)
		}
	}
}

// What was interrupted is made again only if it reads.
func TestInterruptedCall(t *testing.T) {
	no := func(string) bool { return false }
	s := &Server{now: time.Now, cluster: &Cluster{Peers: placement.NewPeers("b", &movedSession{at: "b"}, time.Now), Lives: func(string) bool { return true }, Moving: no}}
	for method, want := range map[string]int{http.MethodGet: 2, http.MethodPost: 1, http.MethodDelete: 1} {
		c := &call{Context: echo.New().NewContext(httptest.NewRequest(method, "/v1/sessions/s1/x", nil), httptest.NewRecorder())}
		c.SetParamNames("session_id")
		c.SetParamValues("s1")
		calls := 0
		err := s.whileMoving(c, reachLive, nil, func() error {
			if calls++; calls == 1 {
				return fault.Wrap(session.ErrInterrupted, fault.NodeUnavailable, "test", "")
			}
			return nil
		})
		if calls != want || (err == nil) != (want == 2) {
			t.Errorf("%s was made %d times, %v", method, calls, err)
		}
	}
}

// Nothing is repeated after the answer has begun, or after another error.
func TestNotRepeated(t *testing.T) {
	no := func(string) bool { return false }
	s := &Server{now: time.Now, cluster: &Cluster{Peers: placement.NewPeers("b", &movedSession{at: "b"}, time.Now), Lives: func(string) bool { return true }, Moving: no}}
	for name, answer := range map[string]func(c *call) error{
		"begun":  func(c *call) error { return errors.Join(c.NoContent(http.StatusOK), session.ErrMoving) },
		"failed": func(*call) error { return fault.New(fault.SessionNotRunning, "test", "") },
	} {
		c := &call{Context: echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/v1/sessions/s1", nil), httptest.NewRecorder())}
		c.SetParamNames("session_id")
		c.SetParamValues("s1")
		calls := 0
		if err := s.whileMoving(c, reachLive, nil, func() error { calls++; return answer(c) }); err == nil || calls != 1 {
			t.Errorf("%s: answered %d times, %v", name, calls, err)
		}
	}
}
