package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
)

// A node gives the files of a session that it has ended as moved to the node that asks for them.
// That one learns if they are not there, or if they do not arrive whole. Clients get only what the
// session's own routes answer.
func TestNodeGivesFiles(t *testing.T) {
	n := newNodes(t, nil, "a", "b")
	all := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	given := 0
	give := func(after error) func(context.Context, string, io.Writer) error {
		return func(_ context.Context, id string, w io.Writer) error {
			if given++; id != liveID {
				t.Errorf("asked for %s", id)
			}
			if fault.Is(after, fault.FileNotFound) {
				return after
			}
			_, err := w.Write(all)
			return errors.Join(err, after)
		}
	}
	mover := forward.NewMover(n.rigs["a"].server.cluster.Peers, n.rigs["a"].server.cluster.Forwarder)
	read := func() ([]byte, error) {
		r, err := mover.Files(t.Context(), "b", liveID)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		return data, errors.Join(err, r.Close())
	}
	b := n.rigs["b"]
	b.server.cluster.Give = give(nil)
	if data, err := read(); err != nil || !bytes.Equal(data, all) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	b.server.cluster.Give = give(errors.New("broken on purpose"))
	if _, err := read(); !fault.Is(err, fault.NodeUnavailable) {
		t.Errorf("what was cut off is taken for whole: %v", err)
	}
	b.server.cluster.Give = give(fault.New(fault.FileNotFound, "test", "not here"))
	if _, err := read(); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("files that are not there: %v", err)
	}
	given = 0
	for _, path := range []string{"/files", "/files?purpose=files"} {
		b.do(t, http.MethodGet, "/v1/sessions/"+liveID+path, "")
		b.do(t, http.MethodGet, "/v1/sessions/"+liveID+path, "", "Authorization: ", forward.Header+": forged")
	}
	if given != 0 {
		t.Error("a client gets the files of a session that moves")
	}
	n.set(func() { n.node("b").Left = -1 })
	n.rigs["a"].server.cluster.Peers.Forget()
	if _, err := read(); !fault.Is(err, fault.NodeNotFound) {
		t.Errorf("a node without a lease: %v", err)
	}
}
