package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/request"
)

// Cluster is what a node needs to pass calls on to other nodes.
type Cluster struct {
	Peers     *placement.Peers
	Line      *placement.Line
	Signer    *forward.Signer
	Forwarder *forward.Forwarder
	// Lives reports whether a session lives in this daemon, or its data is being saved here.
	Lives func(sessionID string) bool
	// Moving reports whether a session of this daemon is being moved to another node.
	Moving func(sessionID string) bool
	// Take continues a session that another node has ended as moved.
	Take func(ctx context.Context, sessionID string) error
	// Give writes the files of a session that this node has ended as moved; file_not_found if it
	// does not have them.
	Give func(ctx context.Context, sessionID string, w io.Writer) error
	// Caller returns the caller that a key stands for; unauthorized if there is no such key.
	Caller func(ctx context.Context, keyID string) (access.Caller, error)
	// Wants returns what a create needs of its node.
	Wants func(ctx context.Context, r request.Create) (placement.Wanted, error)
	// ListPatience is how long a list waits for other nodes, for all of them together; 0: a second.
	ListPatience time.Duration
	// Waiter returns a create as it waits for a place.
	Waiter func(ctx context.Context, c access.Caller, r request.Create, wanted placement.Wanted) (placement.Waiter, error)
}

// reach says of which sessions calls of a route are passed on.
type reach int

const (
	reachLive reach = iota // of those that have not ended
	reachLast              // also of ended ones: the node where they have lived last may still have something
	reachNone              // of none: the catalogue and the store answer
)

// reaches has the routes of sessions that are not reachLive, by method and path.
var reaches = map[string]reach{
	"GET " + sessionPath + "/snapshots":        reachNone,
	"GET " + sessionPath + "/snapshots/latest": reachNone,
	"GET " + sessionPath + "/notes":            reachNone,

	"DELETE " + sessionPath:               reachLast, // --undo-window
	"POST " + sessionPath + "/live/save":  reachLast, // a second save, by a ticket of the first
	"GET " + sessionPath + "/files":       reachLast,
	"GET " + sessionPath + "/files/:name": reachLast,
}

// reachOf returns the reach of a route.
func reachOf(method, path string) reach {
	if path != sessionPath && !strings.HasPrefix(path, sessionPath+"/") || strings.HasPrefix(path, sessionPath+"/scopes") {
		return reachNone
	}
	return reaches[method+" "+path]
}

// receive checks calls that other nodes have passed on. A header of its answer tells these nodes
// that the call itself was not looked at. Without a cluster the header means nothing.
func (s *Server) receive(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, err := s.cluster.Signer.Receive(c.Request())
		if err != nil {
			c.Response().Header().Set(forward.Header, forward.Refused)
			return err
		}
		c.SetRequest(r)
		return next(c)
	}
}

// ticketElsewhere reports whether a call that was refused here has a ticket which only the node
// of its session can check. Keys, and what cannot be a ticket, are checked before a call is
// passed on, so that a call without credentials costs no look at the catalogue and no hop.
func ticketElsewhere(c *call, err error) bool {
	return c.byTicket && fault.Is(err, fault.Unauthorized) && access.IsTicket(c.QueryParam("ticket"))
}

// whileMoving answers a call by the node of its session, with answer if that is this one. If the
// session begins to move while it is answered, the call waits and is answered by the new node.
// authorised is the error of the caller's credentials.
func (s *Server) whileMoving(c *call, route reach, authorised error, answer func() error) error {
	if s.cluster == nil || route == reachNone || authorised != nil && !ticketElsewhere(c, authorised) {
		return answer()
	}
	if authorised == nil {
		if err := c.keepSmall(); err != nil {
			return err
		}
	}
	until := s.now().Add(movingPatience)
	for {
		if done, err := s.passOn(c, route); done || err != nil {
			return err
		}
		c.repeatable()
		err := answer()
		if !c.again(err) || s.now().After(until) {
			return err
		}
		if pause := s.newMoving(c, "").pause(); pause != nil {
			return pause
		}
	}
}

// again reports whether a call that failed with err is to be made once more, on the node to which
// its session moves. Nothing of it was carried out, or it only reads.
func (c *call) again(err error) bool {
	r := c.Request()
	if c.Response().Committed || c.kept == nil && hasBody(r) {
		return false
	}
	return errors.Is(err, session.ErrMoving) || r.Method == http.MethodGet && errors.Is(err, session.ErrInterrupted)
}

// keptBody is the size in bytes up to which the body of a call is kept until the call is
// answered, in case it must be repeated on another node.
const keptBody = 16 << 10

// keepSmall reads a small body, so that the call can be repeated.
func (c *call) keepSmall() error {
	r := c.Request()
	if !hasBody(r) || r.ContentLength < 1 || r.ContentLength > keptBody {
		return nil
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return bodyError("api.body", err)
	}
	// The server must see the end of the body before it notices that a client disconnects.
	if _, err := r.Body.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
		return bodyError("api.body", err)
	}
	c.kept = body
	return nil
}

// repeatable reports whether a call can be carried out once more, and makes its body whole.
func (c *call) repeatable() bool {
	r := c.Request()
	if c.kept != nil {
		r.Body = io.NopCloser(bytes.NewReader(c.kept))
		return true
	}
	return !hasBody(r)
}

// passOn passes a call on if its session lives on another node. done is false if the call is
// to be answered here.
func (s *Server) passOn(c *call, route reach) (done bool, err error) {
	if s.cluster == nil || route == reachNone {
		return false, nil
	}
	id, err := c.sessionID()
	if err != nil {
		return false, nil // the handler answers the error
	}
	moving := s.newMoving(c, id)
	if err := moving.awaitHere(); err != nil {
		return true, err
	}
	if s.cluster.Lives(id) {
		return false, nil
	}
	place, err := s.cluster.Peers.Find(c.Request().Context(), id)
	for {
		if err == nil {
			place, err = moving.await(place)
		}
		if err != nil {
			return unknown(err)
		}
		if s.cluster.Lives(id) { // it has moved here
			return false, nil
		}
		node, elsewhere, err := s.nodeOf(c, place, route)
		if fault.Is(err, fault.NodeUnavailable) {
			// The session may live on another node by now: what is remembered is up to five seconds old.
			moved, again := s.cluster.Peers.Refind(c.Request().Context(), id)
			if again != nil {
				return unknown(again)
			}
			if moved != place {
				place = moved
				continue
			}
		}
		if err != nil || !elsewhere {
			return err != nil, err
		}
		if _, passed := forward.HopOf(c.Request().Context()); passed {
			return s.refuseHop(c, id)
		}
		c.repeatable()
		err = s.passTo(c, node, forward.Hop{Purpose: forward.ToSession}, nil)
		switch {
		case errors.Is(err, forward.ErrElsewhere):
			if moved, err := s.refind(c, id, place); err != nil {
				return true, err
			} else if place = moved; s.cluster.Lives(id) {
				return false, nil
			}
		case place.Ended && fault.Is(err, fault.NodeUnavailable) && c.repeatable():
			return false, nil // what only that node had cannot be had
		case forward.NotSent(err) && c.repeatable():
			// The node has stopped since it was last looked at, and may have moved the session before.
			moved, again := s.cluster.Peers.Refind(c.Request().Context(), id)
			if again != nil || moved == place {
				return true, err
			}
			place = moved
		default:
			return true, err
		}
	}
}

// unknown returns what passOn returns if a session was not found: a call about a session that
// does not exist is answered here.
func unknown(err error) (done bool, _ error) {
	if fault.Is(err, fault.SessionNotFound) {
		return false, nil
	}
	return true, err
}

// nodeOf returns the node to which a call about a session at a place belongs. elsewhere is
// false if it is this one.
func (s *Server) nodeOf(c *call, place placement.Place, route reach) (_ placement.Node, elsewhere bool, err error) {
	if place.NodeID == "" || place.NodeID == s.cluster.Peers.Self() || place.Ended && route != reachLast {
		return placement.Node{}, false, nil
	}
	node, err := s.cluster.Peers.Node(c.Request().Context(), place.NodeID)
	switch {
	case err == nil && node.Leased():
		return node, true, nil
	case place.Ended && (err == nil || fault.Is(err, fault.NodeNotFound)):
		return node, false, nil
	case err == nil || fault.Is(err, fault.NodeNotFound):
		return node, false, fault.New(fault.NodeUnavailable, "api.forward", "%s", fault.NodeUnavailable.Text())
	}
	return node, false, err
}

// refuseHop answers a call that a node has passed on and that does not belong here. It is not
// passed on again, so there are no loops. The catalogue is asked, because what is remembered of
// the session may be old here too.
func (s *Server) refuseHop(c *call, id string) (done bool, err error) {
	place, err := s.cluster.Peers.Refind(c.Request().Context(), id)
	if err != nil {
		return unknown(err)
	}
	if place.Ended && !place.Moving || place.NodeID == s.cluster.Peers.Self() {
		return false, nil
	}
	return true, c.NoContent(http.StatusMisdirectedRequest)
}

// refind finds a session again that was not at a place. A call whose body is used up cannot be
// passed on again.
func (s *Server) refind(c *call, id string, was placement.Place) (placement.Place, error) {
	place, err := s.cluster.Peers.Refind(c.Request().Context(), id)
	if err == nil && (!c.repeatable() || place == was) {
		err = fault.New(fault.NodeUnavailable, "api.forward", "the session moves to another node; try again")
	}
	return place, err
}

// passTo passes a call on to a node, and returns its answer to the client. Once the node has not
// refused it, the client's connection serves a request of a known key.
func (s *Server) passTo(c *call, node placement.Node, h forward.Hop, refuses func(*http.Response) error) error {
	r := c.Request().Clone(c.Request().Context())
	r.Header.Set(requestIDHeader, c.Response().Header().Get(requestIDHeader))
	served := func() {}
	defer func() { served() }()
	return s.cluster.Forwarder.Pass(c.Response(), r, node, s.urls.hop(c.Request(), h), func(a *http.Response) error {
		if refuses != nil {
			if err := refuses(a); err != nil {
				return err
			}
		}
		if a.StatusCode < http.StatusBadRequest {
			served = s.connections.serve(connectionOf(c.Request()))
		}
		return nil
	})
}

// hop completes a Hop with what this node knows of the client.
func (o origins) hop(r *http.Request, h forward.Hop) forward.Hop {
	base := o.of(r).base
	h.Client, h.Base = o.address(r), base.String()
	return h
}

// hopBase returns the base of URLs for a call that another node has passed on; nil for others.
func hopBase(r *http.Request) *url.URL {
	h, ok := forward.HopOf(r.Context())
	if !ok {
		return nil
	}
	return h.BaseURL()
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }
