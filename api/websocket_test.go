package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/save"
)

// dial opens a WebSocket. If the answer is not an upgrade, dial returns it with its body.
func dial(t *testing.T, url string, header http.Header) (ws *websocket.Conn, got reply, body string, err error) {
	t.Helper()
	ws, answer, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: header})
	if err == nil {
		t.Cleanup(func() { _ = ws.CloseNow() })
		ws.SetReadLimit(8 << 20)
		return ws, reply{answer.StatusCode, answer.Header}, "", nil
	}
	if answer == nil {
		t.Fatal(err)
	}
	data, readErr := io.ReadAll(answer.Body)
	if readErr := errors.Join(readErr, answer.Body.Close()); readErr != nil {
		t.Fatal(readErr)
	}
	return nil, reply{answer.StatusCode, answer.Header}, string(data), err
}

func TestCDPSockets(t *testing.T) {
	r := newRig(t, nil)
	key := http.Header{"Authorization": {"Bearer " + goodKey}}
	for _, x := range []struct {
		name, path string
		header     http.Header
		status     int
	}{
		{"ticket", "/v1/sessions/live-1/cdp?ticket=" + goodTicket, nil, 101},
		{"key", "/v1/sessions/live-1/cdp", key, 101},
		{"page", "/v1/sessions/live-1/cdp/page/T1?ticket=" + goodTicket, nil, 101},
		{"same origin", "/v1/sessions/live-1/cdp?ticket=" + goodTicket, http.Header{"Origin": {r.url}}, 101},
		{"foreign origin", "/v1/sessions/live-1/cdp?ticket=" + goodTicket, http.Header{"Origin": {"https://evil.example"}}, 403},
		{"null origin", "/v1/sessions/live-1/cdp?ticket=" + goodTicket, http.Header{"Origin": {"null"}}, 403},
		{"nothing", "/v1/sessions/live-1/cdp", nil, 401},
		{"ticket of another session", "/v1/sessions/ended-1/cdp?ticket=" + goodTicket, nil, 401},
		{"ended session", "/v1/sessions/ended-1/cdp", key, 409},
		{"unknown session", "/v1/sessions/nobody/cdp", key, 404},
		{"page that cannot be", "/v1/sessions/live-1/cdp/page/..%2fx", key, 404},
		{"unknown parameter", "/v1/sessions/live-1/cdp?token=x", key, 422},
	} {
		ws, answer, _, err := dial(t, r.url+x.path, x.header)
		if answer.StatusCode != x.status {
			t.Errorf("%s: got %v %v, want %d", x.name, answer, err, x.status)
			continue
		}
		if answer.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: no X-Request-Id", x.name)
		}
		if err != nil {
			continue
		}
		large := strings.Repeat("x", 1<<20) // larger than the library's own limit
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(large)); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		kind, got, err := ws.Read(t.Context())
		if err != nil || kind != websocket.MessageText || !strings.HasSuffix(string(got), ":"+large) {
			t.Errorf("%s: got %v, %d bytes, %v", x.name, kind, len(got), err)
		}
		if x.name == "page" && !strings.HasPrefix(string(got), "T1:") {
			t.Errorf("page: reached %.5s", got)
		}
	}
}

func TestCloseCodes(t *testing.T) {
	for want, serve := range map[websocket.StatusCode]func(context.Context, session.Conn) error{
		4001: func(_ context.Context, c session.Conn) error {
			return errors.Join(c.Close(4001, "session_ended"), c.Close(4002, "again"))
		},
		websocket.StatusNormalClosure: func(context.Context, session.Conn) error { return nil },
		websocket.StatusInternalError: func(context.Context, session.Conn) error {
			return fault.New(fault.BrowserFailed, "fake", "%s", strings.Repeat("long ", 50))
		},
	} {
		r := newRig(t, nil)
		r.serve = serve
		ws, _, _, err := dial(t, r.url+"/v1/sessions/live-1/cdp?ticket="+goodTicket, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != want {
			t.Errorf("got %v, want %d", err, want)
		}
	}
}

// A one-shot session is created from the query and ended as the query says when the socket
// has closed, for whatever reason.
func TestConnect(t *testing.T) {
	r := newRig(t, nil)
	hs := httptest.NewServer(r.server) // closed below: that waits for the handler
	ws, answer, _, err := dial(t, hs.URL+`/v1/connect?user_id=bob&labels={"a":"b"}&viewport={"width":1,"height":2}&user_agent=mine&restore_tabs=false&idle_timeout_seconds=60`+
		`&save_snapshot_mode=filesystem&save_as_default=true&default_conflict=overwrite&ticket=`+oneTicket, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Header.Get("X-Session-Id"); got != liveID {
		t.Errorf("X-Session-Id: got %q", got)
	}
	if err := ws.CloseNow(); err != nil {
		t.Error(err)
	}
	r.server.running.Lock() // waits for the handler
	defer r.server.running.Unlock()
	hs.Close()
	if len(r.creates) != 1 || len(r.ends) != 1 {
		t.Fatalf("%d creates, %d ends", len(r.creates), len(r.ends))
	}
	c := r.creates[0]
	if !c.Connects() || c.UserID != "bob" || c.Labels["a"] != "b" || c.RestoreTabs || c.Idle != seconds(60) || c.Lifetime != seconds(21600) ||
		c.Overrides.Viewport.Height != 2 || c.Overrides.UserAgent != "mine" {
		t.Errorf("created %+v", c)
	}
	if e := r.ends[0]; e.Mode != save.Filesystem || !e.SaveAsDefault || e.Conflict != save.Overwrite {
		t.Errorf("ended %+v", e)
	}
}

func TestConnectRefuses(t *testing.T) {
	r := newRig(t, nil)
	key := http.Header{"X-Api-Key": {goodKey}}
	for _, x := range []struct {
		query  string
		header http.Header
		status int
		names  string
	}{
		{"", nil, 401, ""},
		{"ticket=" + goodTicket, nil, 401, ""},
		{"api_key=" + goodKey, nil, 401, ""},
		{"api_key=" + goodKey, key, 422, "api_key"},
		{"save_as_default=true", key, 422, "save_as_default"},
		{"viewport={}", key, 422, "viewport"},
		{"locale=german!", key, 422, "locale"},
		{"labels=x", key, 400, "labels: must be an object"},
		{"wait_seconds=soon", key, 400, "wait_seconds: must be an integer"},
		{"ticket=" + oneTicket, http.Header{"Origin": {"https://evil.example"}}, 403, "Origin"},
	} {
		_, answer, body, err := dial(t, r.url+"/v1/connect?"+x.query, x.header)
		if err == nil || answer.StatusCode != x.status || !strings.Contains(body, x.names) {
			t.Errorf("%s: got %d %s, want %d with %q", x.query, answer.StatusCode, body, x.status, x.names)
		}
	}
	if len(r.creates) != 0 {
		t.Errorf("created %d sessions", len(r.creates))
	}
}

// A one-shot request does not end a session that existed before.
func TestConnectLeavesASharedSession(t *testing.T) {
	r := newRig(t, nil)
	r.existed = true
	ws, _, _, err := dial(t, r.url+"/v1/connect?on_live=share", http.Header{"X-Api-Key": {goodKey}})
	if err != nil {
		t.Fatal(err)
	}
	_ = ws.Close(websocket.StatusNormalClosure, "")
	r.server.running.Lock()
	defer r.server.running.Unlock()
	if len(r.ends) != 0 {
		t.Errorf("ended %v", r.ends)
	}
}

// Over TLS every byte goes through the encryption, so nothing is written to the raw
// connection.
func TestCDPOverTLS(t *testing.T) {
	r := newRig(t, nil)
	r.serve = func(ctx context.Context, c session.Conn) error {
		msg, err := c.Read(ctx)
		if nc, is := c.(session.NonblockingConn); err == nil && is && nc.TryWrite([]byte("offered")) {
			err = errors.New("TryWrite accepted a message over TLS")
		}
		return errors.Join(err, c.Write(ctx, msg))
	}
	hs := httptest.NewTLSServer(r.server)
	defer hs.Close()
	ws, _, err := websocket.Dial(t.Context(), hs.URL+"/v1/sessions/live-1/cdp?ticket="+goodTicket, &websocket.DialOptions{HTTPClient: hs.Client()}) //nolint:bodyclose // an accepted upgrade has no body
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow() //nolint:errcheck // only cleans up
	for _, size := range []int{10, 2 * smallWrite} {
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat("x", size))); err != nil {
			t.Fatal(err)
		}
	}
	if _, got, err := ws.Read(t.Context()); err != nil || string(got) != "xxxxxxxxxx" {
		t.Errorf("got %.20q, %v", got, err)
	}
}
