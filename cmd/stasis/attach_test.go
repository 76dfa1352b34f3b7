package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// attachedDaemon plays the daemon of one session, "s". Its browser answers each command
// with what Browser.getVersion answers. A page echoes.
type attachedDaemon struct {
	*httptest.Server
	ended atomic.Bool
	calls atomic.Int32
}

func startAttachedDaemon(t *testing.T) *attachedDaemon {
	d := &attachedDaemon{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		d.calls.Add(1)
		switch {
		case r.Header.Get("Authorization") != "Bearer the-key":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"code":"unauthorized","message":"wrong key"}`))
		case r.PathValue("id") != "s":
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"code":"session_not_found","message":"no such session"}`))
		case d.ended.Load():
			_, _ = w.Write([]byte(`{"status":"completed","ended_at":"2026-11-24T00:00:00Z"}`))
		default:
			_, _ = w.Write([]byte(`{"status":"ready","ended_at":null}`))
		}
	})
	mux.HandleFunc("GET /v1/sessions/s/json/list", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`[{"id":"T","type":"page","title":"t","url":"http://a/","webSocketDebuggerUrl":"ws://daemon/x?ticket=secret"}]`))
	})
	socket := func(answer func(message []byte) []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = conn.CloseNow() }() // the test has ended
			for {
				kind, message, err := conn.Read(r.Context())
				if err != nil {
					return
				}
				if string(message) == "end" {
					_ = conn.Close(4001, "session_ended")
					return
				}
				if conn.Write(r.Context(), kind, answer(message)) != nil {
					return
				}
			}
		}
	}
	mux.HandleFunc("GET /v1/sessions/s/cdp", socket(func([]byte) []byte {
		return []byte(`{"id":1,"result":{"product":"Chrome/156.0.0.1","protocolVersion":"1.3","revision":"@abc","userAgent":"UA","jsVersion":"15.6","targetId":"N"}}`)
	}))
	mux.HandleFunc("GET /v1/sessions/s/cdp/page/T", socket(func(message []byte) []byte { return append([]byte("echo "), message...) }))
	d.Server = httptest.NewServer(mux)
	t.Cleanup(d.Close)
	return d
}

func (d *attachedDaemon) port(t *testing.T) *httptest.Server {
	t.Helper()
	closing, cancel := context.WithCancel(t.Context())
	port := &devToolsPort{daemon: remoteDaemon{URL: d.URL, Key: "the-key"}, session: "s", closing: closing}
	if err := port.readVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(port)
	t.Cleanup(func() { cancel(); server.Close(); port.sockets.Wait() })
	return server
}

// The port answers as Chrome's, with its own addresses, and never gives away a ticket
// of the daemon.
func TestDevToolsPort(t *testing.T) {
	port := startAttachedDaemon(t).port(t)
	host := strings.TrimPrefix(port.URL, "http://")
	for _, c := range []struct {
		method, path string
		status       int
		contains     []string
	}{
		{"GET", "/json/version", 200, []string{`"Browser": "Chrome/156.0.0.1"`, `"V8-Version": "15.6"`, `"WebKit-Version": "537.36 (@abc)"`, "ws://" + host + "/devtools/browser/s"}},
		{"GET", "/json/list/", 200, []string{`"id": "T"`, `"ws://` + host + `/devtools/page/T"`}},
		{"GET", "/json", 200, []string{`"id": "T"`}},
		{"PUT", "/json/new?http://b/?q=1%262", 200, []string{`"id": "N"`, `"url": "http://b/?q=1\u00262"`}},
		{"GET", "/json/new?http://b/", 405, []string{"PUT"}},
		{"GET", "/json/activate/T", 200, []string{"Target activated"}},
		{"GET", "/json/close/T", 200, []string{"Target is closing"}},
		{"GET", "/json/protocol", 404, nil}, {"GET", "/", 404, nil}, {"GET", "/devtools/page/", 404, nil},
		{"GET", "/devtools/page/unknown", 502, []string{"404"}},
	} {
		status, body := request(t, c.method, port.URL+c.path, nil)
		if status != c.status || strings.Contains(body, "secret") {
			t.Errorf("%s %s = %d %s", c.method, c.path, status, body)
		}
		for _, part := range c.contains {
			if !strings.Contains(body, part) {
				t.Errorf("%s %s: %s lacks %s", c.method, c.path, body, part)
			}
		}
	}
}

// Web pages cannot use the port: not by their own requests, and not through a name that
// leads to this machine.
func TestDevToolsPortIsNotForPages(t *testing.T) {
	port := startAttachedDaemon(t).port(t)
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"Host", "localhost:9222", 200}, {"Host", "[::1]:9222", 200}, {"Host", "192.168.0.7", 200}, {"Host", "app.localhost", 200},
		{"Host", "evil.example", 403}, {"Host", "127.0.0.1.evil.example:9222", 403}, {"Host", "localhost.evil.example", 403},
		{"Origin", "http://evil.example", 403}, {"Origin", "null", 403}, {"Origin", port.URL, 403},
		{"Sec-Fetch-Site", "cross-site", 403}, {"Sec-Fetch-Site", "same-site", 403}, {"Sec-Fetch-Site", "none", 200},
	} {
		for _, path := range []string{"/json/version", "/devtools/page/T"} {
			want := c.status
			if path != "/json/version" && want == 200 {
				want = http.StatusUpgradeRequired // no upgrade was asked for
			}
			if status, body := request(t, "GET", port.URL+path, map[string]string{c.header: c.value}); status != want {
				t.Errorf("%s with %s: %s = %d %s, want %d", path, c.header, c.value, status, body, want)
			}
		}
	}
}

// Messages pass unchanged in both directions, and so does the code with which the daemon
// closes.
func TestDevToolsPortBridge(t *testing.T) {
	port := startAttachedDaemon(t).port(t)
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(port.URL, "http")+"/devtools/page/T", nil) //nolint:bodyclose // Dial's answer has no body
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }() // the daemon has closed it
	long := strings.Repeat("x", 20<<10)
	for _, message := range []string{"a", long, "end"} {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
		_, got, err := conn.Read(t.Context())
		if message == "end" {
			if websocket.CloseStatus(err) != 4001 {
				t.Errorf("the client got %v", err)
			}
		} else if err != nil || string(got) != "echo "+message {
			t.Errorf("%.20q, %v", got, err)
		}
	}
}

// The key stays with the daemon: neither calls nor sockets follow a redirect. Go's client
// would send the key on to another port of the host.
func TestKeyDoesNotFollowRedirects(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(other.Close)
	redirecting := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(redirecting.Close)
	daemon := remoteDaemon{URL: redirecting.URL, Key: "the-key"}
	port := &devToolsPort{daemon: daemon, session: "s", closing: t.Context()}
	_, err := port.dial(t.Context(), port.path("cdp"))
	for name, err := range map[string]error{"socket": err, "call": daemon.call(t.Context(), "GET", "/v1/sessions/s", nil, nil)} {
		if err == nil || !strings.Contains(err.Error(), other.URL) || !strings.Contains(err.Error(), "--url") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the server of the redirect got %d requests", n)
	}
}

// Every failure names what is wrong, and the end of the session ends the command.
func TestAttach(t *testing.T) {
	d := startAttachedDaemon(t)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()     // only its port was needed
	used := taken.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	for _, c := range []struct {
		change func(*attachCmd)
		code   int
		says   string
	}{
		{func(c *attachCmd) { c.Port = used }, exitUsage, "--port: another program"},
		{func(c *attachCmd) { c.Port = 70000 }, exitUsage, "--port: must be"},
		{func(c *attachCmd) { c.Host = "0.0.0.0" }, exitUsage, "--insecure-listen"},
		{func(c *attachCmd) { c.Host = "localhost" }, exitUsage, "--host: must be an IP address"},
		{func(c *attachCmd) { c.Session = "none" }, exitFailed, "session_not_found"},
		{func(c *attachCmd) { c.Key = "other" }, exitFailed, "unauthorized"},
		{func(c *attachCmd) { c.URL = "http://127.0.0.1:1" }, exitFailed, "is stasis serve running?"},
	} {
		cmd := &attachCmd{remoteDaemon: remoteDaemon{URL: d.URL, Key: "the-key"}, Host: "127.0.0.1", Session: "s"}
		c.change(cmd)
		err := cmd.Run(t.Context())
		if code := report(err); code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %d %v, want %d %s", cmd, code, err, c.code, c.says)
		}
	}

	cmd := &attachCmd{remoteDaemon: remoteDaemon{URL: d.URL, Key: "the-key"}, Host: "127.0.0.1", Session: "s", period: time.Millisecond}
	result := make(chan error, 1)
	before := d.calls.Load()
	go func() { result <- cmd.Run(t.Context()) }()
	for d.calls.Load() < before+3 { // until it watches
		runtime.Gosched()
	}
	d.ended.Store(true)
	if err := <-result; err != nil {
		t.Errorf("the end of the session: %v", err)
	}
	if err := cmd.Run(t.Context()); report(err) != exitFailed {
		t.Errorf("a session that has ended: %v", err)
	}
}

func request(t *testing.T, method, address string, header map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Set(name, value)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}
