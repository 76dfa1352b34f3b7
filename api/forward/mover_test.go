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
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/placement"
)

// catalogue is a placement.Catalogue of some nodes.
type catalogue []profiles.Node

func (c catalogue) Nodes(context.Context) ([]profiles.Node, error) { return c, nil }
func (c catalogue) NodeOf(context.Context, string) (placement.Place, error) {
	return placement.Place{}, nil
}

// A session can move to other nodes with room, its engine and a Chrome that is new enough. The
// node that takes it knows which node asks for that.
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
	node := func(id, chrome string, free int) profiles.Node {
		return profiles.Node{ID: id, URL: there.URL, Number: 1, Left: time.Hour, Status: profiles.JSON(placement.Status{Free: free}),
			Facts: profiles.JSON(placement.Facts{Engines: map[string]string{"chrome": chrome}})}
	}
	drained := node("drained", "150.0.0.0", 9)
	drained.Draining = true
	self := node("a", "150.0.0.0", 9)
	self.Draining = true
	peers := placement.NewPeers("a", catalogue{self, node("b", "150.0.0.0", 2), node("c", "151.0.0.0", 3), drained, node("full", "150.0.0.0", 0), node("old", "149.0.0.0", 9)}, time.Now)
	f := forward.New(forward.Config{Signer: signer("a"), Nodes: peers, Log: slog.New(slog.DiscardHandler)})
	defer f.Close()
	m := forward.NewMover(peers, f)
	if ids, err := m.For(t.Context(), "s1", "chrome"); err != nil || !slices.Equal(ids, []string{"c", "b"}) {
		t.Errorf("it can move to %q, %v", ids, err)
	}
	if ids, err := m.For(t.Context(), "s1", "shell"); err != nil || len(ids) != 0 {
		t.Errorf("a session of another engine can move to %q, %v", ids, err)
	}
	if err := m.Take(t.Context(), "b", "s1"); err != nil {
		t.Error(err)
	}
	full = true
	if err := m.Take(t.Context(), "b", "s1"); !fault.Is(err, fault.TooManySessions) {
		t.Errorf("a node without room: %v", err)
	}
}
