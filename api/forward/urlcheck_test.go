package forward_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/session/placement"
)

// cluster are the nodes that a URLCheck of node a knows.
type cluster []placement.Node

func (c cluster) Self() string                                         { return "a" }
func (c cluster) Forget()                                              {}
func (c cluster) Nodes(context.Context) ([]placement.Node, error)      { return c, nil }
func (c cluster) Node(context.Context, string) (placement.Node, error) { return c[0], nil }

// A node warns if the first other one that answers has not reached it, or if no other one answers.
// It tries again, and says when it is reached.
func TestURLCheck(t *testing.T) {
	const refused = "connection refused"
	for name, x := range map[string]struct {
		peers string   // b answers, c does not, d has no lease
		said  []string // what b answers; the last one again and again
		logs  []string // parts of the lines
		tries int      // of b
	}{
		"alone":               {peers: ""},
		"without a lease":     {peers: "d"},
		"reached":             {peers: "cb", said: []string{""}, tries: 1},
		"reached later":       {peers: "b", said: []string{refused, refused, ""}, tries: 3, logs: []string{"--node-url", "another node reaches this node now"}},
		"not reached":         {peers: "b", said: []string{refused}, tries: 5, logs: []string{"does not reach this node at its --node-url"}},
		"no other is reached": {peers: "c", logs: []string{"this node does not reach another node"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			tries := 0
			signer := func(id string) *forward.Signer { return forward.NewSigner(id, []byte("shared"), time.Now) }
			b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r, err := signer("b").Receive(r)
				h, _ := forward.HopOf(r.Context())
				if err != nil || h.Purpose != forward.ToTry || h.From != "a" || r.Header.Get("Authorization")+r.Header.Get("X-Api-Key") != "" {
					t.Errorf("%s %+v, %v", r.URL, h, err)
				}
				mu.Lock()
				defer mu.Unlock()
				tries++
				_ = json.NewEncoder(w).Encode(forward.Health{Status: forward.Healthy, Unreached: x.said[min(tries, len(x.said))-1]})
			}))
			defer b.Close()
			known := cluster{{ID: "a", URL: "http://own:1", Number: 1, Left: time.Hour}}
			for _, id := range strings.Split(x.peers, "") {
				n := placement.Node{ID: id, URL: map[string]string{"b": b.URL, "c": "http://127.0.0.1:1"}[id], Number: 1, Left: time.Hour}
				if id == "d" {
					n.Number = 0
				}
				n.Facts.URLMAC = signer("a").URLMAC(n.ID, n.URL)
				known = append(known, n)
			}
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, nil))
			f := forward.New(forward.Config{Signer: signer("a"), Nodes: known, Log: log})
			defer f.Close()
			forward.NewURLCheck(known, f, time.Microsecond, log).Run(t.Context())
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if out.Len() == 0 {
				lines = nil
			}
			if len(lines) != len(x.logs) || tries != x.tries {
				t.Fatalf("%d tries, %s", tries, out.String())
			}
			for i, part := range x.logs {
				if !strings.Contains(lines[i], part) || !strings.Contains(lines[i], "node="+x.peers[:1]) || strings.Contains(lines[i], "url=http://own:1") != (x.peers == "b") {
					t.Errorf("line %d: %s", i, lines[i])
				}
			}
		})
	}
}
