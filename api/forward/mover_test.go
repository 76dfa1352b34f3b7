package forward_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
)

// peers are the nodes that a create can be placed on, the best first.
type peers struct {
	order  []placement.Node
	reads  int
	wanted placement.Wanted
	placed string
}

func (p *peers) Self() string     { return "a" }
func (p *peers) Placed(id string) { p.placed = id }
func (p *peers) Forget()          { p.reads++ }

func (p *peers) Node(_ context.Context, id string) (placement.Node, error) {
	i := slices.IndexFunc(p.order, func(n placement.Node) bool { return n.ID == id })
	return p.order[i], nil
}

func (p *peers) Order(_ context.Context, w placement.Wanted) ([]placement.Node, error) {
	if p.wanted = w; p.reads == 0 {
		return p.order[:1], nil
	}
	return p.order, nil
}

// A session can move to other nodes with room. The node that takes it knows which node asks for
// that.
func TestMover(t *testing.T) {
	full := false
	signer := func(id string) *forward.Signer { return forward.NewSigner(id, []byte("shared"), time.Now) }
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, err := signer("b").Receive(r)
		h, passed := forward.HopOf(r.Context())
		if err != nil || !passed || h.Purpose != forward.ToMove || h.From != "a" || r.Method != http.MethodPost || r.URL.Path != "/v1/sessions/s1/resume" {
			t.Errorf("%s %s, %+v, %v", r.Method, r.URL, h, err)
		}
		if full {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"code":"too_many_sessions","message":"full"}`)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer there.Close()
	node := func(id string, free int) placement.Node {
		return placement.Node{ID: id, URL: there.URL, Number: 1, Left: time.Hour, Status: placement.Status{Free: free},
			Facts: placement.Facts{Engines: map[string]string{"chrome": "150.0.0.0"}, URLMAC: signer("a").URLMAC(id, there.URL)}}
	}
	known := &peers{order: []placement.Node{node("a", 9), node("c", 3), node("b", 2), node("full", 0)}}
	f := forward.New(forward.Config{Signer: signer("a"), Nodes: known, Log: slog.New(slog.DiscardHandler)})
	defer f.Close()
	m := forward.NewMover(known, f)
	// The nodes are read again before there is none.
	if ids, err := m.For(t.Context(), "s1", "chrome"); err != nil || !slices.Equal(ids, []string{"c", "b"}) || known.reads != 1 {
		t.Errorf("it can move to %q, %v", ids, err)
	}
	if want := (placement.Wanted{Engine: "chrome", SnapshotID: "s1", Chrome: "150.0.0.0"}); known.wanted != want {
		t.Errorf("it needs %+v, not %+v", known.wanted, want)
	}
	if err := m.Take(t.Context(), "b", "s1"); err != nil || known.placed != "b" {
		t.Errorf("placed on %q, %v", known.placed, err)
	}
	full = true
	if err := m.Take(t.Context(), "b", "s1"); !fault.Is(err, fault.TooManySessions) {
		t.Errorf("a node without room: %v", err)
	}
}
