package api

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
)

// A viewer that does not read is cut off after the patience. One that reads gets every
// message whole, of both kinds.
func TestViewerThatDoesNotRead(t *testing.T) {
	const patience = 300 * time.Millisecond
	r := newRig(t, func(o *Options) { o.Patience = patience })
	picture := bytes.Repeat([]byte("p"), 10*viewChunk+1)
	url := r.url + "/v1/sessions/live-1/live/socket?ticket=" + viewTicket

	cut := make(chan struct{}, 1)
	r.view = func(ctx context.Context, conn session.ViewConn) error {
		for {
			if err := conn.WriteBinary(ctx, picture); err != nil {
				cut <- struct{}{}
				return nil
			}
		}
	}
	if _, _, _, err := dial(t, url, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-cut:
	case <-time.After(patience + 10*closeTime):
		t.Fatal("the viewer was not cut off")
	}

	r = newRig(t, func(o *Options) { o.Patience = time.Minute })
	url = r.url + "/v1/sessions/live-1/live/socket?ticket=" + viewTicket
	r.view = func(ctx context.Context, conn session.ViewConn) error {
		for range 200 {
			if err := conn.WriteBinary(ctx, picture); err != nil {
				return err
			}
		}
		return conn.Write(ctx, []byte("state"))
	}
	ws, _, _, err := dial(t, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 201 {
		kind, msg, err := ws.Read(t.Context())
		whole := kind == websocket.MessageBinary && bytes.Equal(msg, picture)
		if n == 200 {
			whole = kind == websocket.MessageText && string(msg) == "state"
		}
		if err != nil || !whole {
			t.Fatalf("message %d: %v, %d bytes, %v", n, kind, len(msg), err)
		}
	}
}

// Viewers and CDP clients have separate limits. Neither takes the places of the other.
func TestViewersHaveTheirOwnLimit(t *testing.T) {
	r := newRig(t, nil)
	const viewer, client = "/v1/sessions/live-1/live/socket?ticket=" + viewTicket, "/v1/sessions/live-1/cdp?ticket=" + goodTicket
	r.fullOfClients = fault.New(fault.TooManyClients, "test", "")
	if _, _, _, err := dial(t, r.url+viewer, nil); err != nil {
		t.Errorf("a viewer beside too many clients: %v", err)
	}
	r.fullOfClients, r.fullOfViewers = nil, fault.New(fault.TooManyViewers, "test", "")
	if _, _, _, err := dial(t, r.url+client, nil); err != nil {
		t.Errorf("a client beside too many viewers: %v", err)
	}
	_, got, body, err := dial(t, r.url+viewer, nil)
	if err == nil || got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" || !strings.Contains(body, `"too_many_viewers"`) {
		t.Errorf("one viewer too many: %v %s %v", got, body, err)
	}
}
