package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/placement"
)

// listedNodes is the store of fakeNodes.
type listedNodes struct {
	profiles.NodeStore
	of *fakeNodes
}

func (l *listedNodes) Nodes(ctx context.Context) ([]profiles.Node, error) { return l.of.Nodes(ctx) }

// forAdmins lists nodes for a caller with the right admin.
type forAdmins struct{ *placement.Admin }

func (f forAdmins) Nodes(ctx context.Context, c access.Caller) ([]placement.Info, error) {
	c.Rights = append(c.Rights, access.RightAdmin)
	return f.Admin.Nodes(ctx, c)
}

// newListedNodes makes nodes that answer GET /v1/nodes.
func newListedNodes(t *testing.T, ids ...string) *nodes {
	stores := map[string]*listedNodes{}
	n := newNodes(t, func(id string, o *Options) {
		stores[id] = &listedNodes{}
		o.Nodes = forAdmins{placement.NewAdmin(stores[id], id)}
	}, ids...)
	for _, s := range stores {
		s.of = n.fakeNodes
	}
	return n
}

// hangs returns a server that never answers.
func hangs(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(s.Close)
	return s
}

// A list of nodes says which of those with a lease have answered. Several that do not answer take no
// longer than one. A server that is no node does not count.
func TestNodesThatAnswer(t *testing.T) {
	n := newListedNodes(t, "a", "b", "drained", "gone", "hangs", "hangs2", "late", "other", "stopped", "swapped")
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(web.Close)
	n.set(func() {
		n.node("drained").Draining = true
		n.at("gone", "http://127.0.0.1:1")
		n.at("hangs", hangs(t).URL)
		n.at("hangs2", hangs(t).URL)
		n.node("late").Left = -1
		n.at("other", web.URL)
		n.node("stopped").Number = 0
		n.at("swapped", n.rigs["b"].url)
	})
	answer, body := n.rigs["a"].do(t, "GET", "/v1/nodes", "")
	var list struct {
		Nodes []struct {
			ID      string `json:"node_id"`
			Answers *bool
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s, %v", answer.StatusCode, body, err)
	}
	yes, no := true, false
	want := map[string]*bool{"a": nil, "b": &yes, "drained": &yes, "gone": &no, "hangs": &no, "hangs2": &no, "late": nil, "other": &no, "stopped": nil, "swapped": &no}
	for _, got := range list.Nodes {
		if w := want[got.ID]; (w == nil) != (got.Answers == nil) || w != nil && *w != *got.Answers {
			t.Errorf("%s: %s", got.ID, body)
		}
		delete(want, got.ID)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// A node asks another one whether it is reached at the URL that it has signed. A client cannot ask
// for that.
func TestNodeIsCalledBack(t *testing.T) {
	n := newNodes(t, nil, "a", "b")
	a, b := n.rigs["a"], n.rigs["b"]
	try := func() (string, error) {
		to, err := a.server.cluster.Peers.Node(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		return a.server.cluster.Forwarder.TryBack(t.Context(), to)
	}
	if unreached, err := try(); unreached != "" || err != nil {
		t.Errorf("a node that is reached: %q, %v", unreached, err)
	}
	caught := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { caught++ }))
	t.Cleanup(other.Close)
	for url, want := range map[string]string{
		"http://127.0.0.1:1": "dial tcp 127.0.0.1:1: connect: connection refused",
		other.URL:            "what answers at this URL is not node a",
	} {
		n.set(func() { n.at("a", url) })
		if unreached, err := try(); unreached != want || err != nil {
			t.Errorf("%s: %q, %v", url, unreached, err)
		}
	}
	n.set(func() { n.node("a").URL = other.URL + "/" })
	if unreached, err := try(); unreached == "" || err != nil || caught != 1 {
		t.Errorf("a URL that is not signed was called %d times: %q, %v", caught, unreached, err)
	}
	forged := forward.NewSigner("a", []byte("other"), time.Now)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/me", nil)
	if err := forged.Sign(r, forward.Hop{To: "b", Purpose: forward.ToTry}); err != nil {
		t.Fatal(err)
	}
	if answer, body := b.do(t, "GET", "/v1/me", "", forward.Header+": "+r.Header.Get(forward.Header)); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a client: %d %s", answer.StatusCode, body)
	}
}
