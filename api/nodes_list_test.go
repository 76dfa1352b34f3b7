package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
)

// nodeInspector is the Inspector of a node. The catalogue of all nodes has the page.
type nodeInspector struct {
	Inspector
	page  []answer.Info
	here  []string // the sessions that live on the node
	asked atomic.Int32
	fails func(ctx context.Context) error // nil: it does not
}

func (n *nodeInspector) List(context.Context, access.Caller, request.List) ([]answer.Info, string, error) {
	page := slices.Clone(n.page)
	for i, s := range page {
		if slices.Contains(n.here, s.ID) {
			page[i] = living(s)
		}
	}
	return page, "next", nil
}

func (n *nodeInspector) Here(ctx context.Context, c access.Caller, ids []string) (found []answer.Info, err error) {
	n.asked.Add(1)
	if n.fails != nil {
		return nil, n.fails(ctx)
	}
	for _, s := range n.page {
		if slices.Contains(ids, s.ID) && slices.Contains(n.here, s.ID) && c.KeyID == caller().KeyID {
			found = append(found, living(s))
		}
	}
	return found, nil
}

// living returns a session with what only its node knows.
func living(s answer.Info) answer.Info {
	s.Tickets, s.Usage = map[access.Purpose]string{access.PurposeCDP: goodTicket}, &answer.Usage{Clients: 1, MemoryBytes: 2}
	return s
}

// recordedOn returns a session of a node as the catalogue has it.
func recordedOn(node, id string) answer.Info {
	s := info(id)
	s.NodeID, s.Tickets = node, nil
	return s
}

type listedSession struct {
	ID     string        `json:"session_id"`
	CDP    string        `json:"cdp_url"`
	NodeID string        `json:"node_id"`
	Usage  *answer.Usage `json:"usage"`
}

// listOf returns the sessions of a list.
func (r *rig) listOf(t *testing.T, path string) ([]listedSession, reply) {
	t.Helper()
	a, body := r.do(t, "GET", path, "")
	var all []listedSession
	if err := json.Unmarshal([]byte(body), &all); a.StatusCode != http.StatusOK || err != nil {
		t.Fatalf("%d %s, %v", a.StatusCode, body, err)
	}
	return all, a
}

// newListingNodes makes nodes with inspectors. The sessions of the page live on their nodes.
func newListingNodes(t *testing.T, page []answer.Info, ids ...string) (*nodes, map[string]*nodeInspector) {
	t.Helper()
	of := map[string]*nodeInspector{}
	n := newNodes(t, func(id string, o *Options) {
		of[id] = &nodeInspector{Inspector: o.Inspector, page: page}
		for _, s := range page {
			if s.NodeID == id && s.EndedAt.IsZero() {
				of[id].here = append(of[id].here, s.ID)
			}
		}
		o.Inspector = of[id]
	}, ids...)
	for _, r := range n.rigs {
		r.server.cluster.ListPatience = time.Minute
	}
	return n, of
}

// A list has the same on each node: the nodes of live sessions describe them. Order and paging are
// those of the catalogue.
func TestListOfAllNodes(t *testing.T) {
	page := []answer.Info{recordedOn("b", "s5"), recordedOn("a", "s4"), recordedOn("c", "s3"), recordedOn("b", endedID), recordedOn("b", "s1")}
	n, of := newListingNodes(t, page, "a", "b", "c")
	for _, id := range []string{"a", "b", "c"} {
		all, answer := n.rigs[id].listOf(t, "/v1/sessions?limit=5&status=ready&user_id=alice")
		if len(all) != len(page) || answer.Header.Get("X-Next-Token") != "next" || answer.Header.Get(missingHeader) != "" {
			t.Fatalf("%s: %+v, %v", id, all, answer.Header)
		}
		base := strings.Replace(n.rigs[id].url, "http", "ws", 1)
		for i, s := range all {
			live := s.ID != endedID
			if s.ID != page[i].ID || live != (s.Usage != nil) || live != strings.HasPrefix(s.CDP, base+"/v1/sessions/"+s.ID+"/cdp?") || live != (s.NodeID == page[i].NodeID) {
				t.Errorf("%s: session %d: %+v", id, i, s)
			}
		}
	}
	for id, i := range of {
		if i.asked.Load() != 2 {
			t.Errorf("%s was asked %d times by two lists of others", id, i.asked.Load())
		}
	}
}

// A node that does not answer, or has no lease, is named. Its sessions are as the catalogue has them.
func TestListWithoutSomeNodes(t *testing.T) {
	page := []answer.Info{recordedOn("fails", "s4"), recordedOn("late", "s3"), recordedOn("unknown", "s2"), recordedOn("b", "s1")}
	n, of := newListingNodes(t, page, "a", "fails", "late", "b")
	of["fails"].fails = func(context.Context) error { return errors.New("broken") }
	n.set(func() { n.node("late").Left = -time.Second })
	all, answer := n.rigs["a"].listOf(t, "/v1/sessions")
	if got := answer.Header.Get(missingHeader); got != "fails, late, unknown" || len(all) != len(page) {
		t.Fatalf("missing: %q of %+v", got, all)
	}
	for i, s := range all {
		if s.ID != page[i].ID || (s.CDP != "") != (s.NodeID == "b") {
			t.Errorf("session %d: %+v", i, s)
		}
	}
}

// A list does not wait for a node that hangs, or cannot be reached.
func TestListDoesNotWait(t *testing.T) {
	page := []answer.Info{recordedOn("hangs", "s2"), recordedOn("gone", "s1")}
	n, of := newListingNodes(t, page, "a", "gone", "hangs")
	of["hangs"].fails = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	n.set(func() { n.at("gone", "http://127.0.0.1:1") })
	n.rigs["a"].server.cluster.ListPatience = 10 * time.Millisecond
	all, answer := n.rigs["a"].listOf(t, "/v1/sessions")
	if got := answer.Header.Get(missingHeader); got != "gone, hangs" || len(all) != 2 || all[0].ID != "s2" || all[1].CDP != "" {
		t.Errorf("missing: %q of %+v", got, all)
	}
}

// A page without live sessions of other nodes is answered without them.
func TestListAsksNoOther(t *testing.T) {
	n, of := newListingNodes(t, []answer.Info{recordedOn("a", "s2"), recordedOn("b", endedID), recordedOn("", "s1")}, "a", "b")
	n.set(func() { n.node("b").Left = -time.Second })
	_, answer := n.rigs["a"].listOf(t, "/v1/sessions")
	if of["b"].asked.Load() != 0 || answer.Header.Get(missingHeader) != "" {
		t.Errorf("b was asked %d times, missing: %q", of["b"].asked.Load(), answer.Header.Get(missingHeader))
	}
}

// Sessions of a node are asked for a few at a time, so that no answer is too large.
func TestLongListOfANode(t *testing.T) {
	var page []answer.Info
	for i := range 2*maxDescribed + 1 {
		page = append(page, recordedOn("b", fmt.Sprint("s", i)))
	}
	n, of := newListingNodes(t, page, "a", "b")
	all, answer := n.rigs["a"].listOf(t, "/v1/sessions")
	if len(all) != len(page) || slices.ContainsFunc(all, func(s listedSession) bool { return s.CDP == "" }) || answer.Header.Get(missingHeader) != "" || of["b"].asked.Load() != 3 {
		t.Errorf("%d sessions after %d calls, missing %q", len(all), of["b"].asked.Load(), answer.Header.Get(missingHeader))
	}
}
