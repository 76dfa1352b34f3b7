package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"mime/multipart"
	"net"
	"net/http"

	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/save"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOriginsOfURLs(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	forwarded := http.Header{"X-Forwarded-Proto": {"evil, https"}, "X-Forwarded-Host": {"evil.example, stasis.example"}}
	for _, x := range []struct {
		name, public, remote string
		tls                  bool
		header               http.Header
		want                 string
	}{
		{"Host", "", "192.0.2.1:5", false, nil, "ws://here:8080/v1/sessions/s/cdp?ticket=t%2B"},
		{"TLS", "", "192.0.2.1:5", true, nil, "wss://here:8080/v1/sessions/s/cdp?ticket=t%2B"},
		{"untrusted proxy", "", "192.0.2.1:5", false, forwarded, "ws://here:8080/v1/sessions/s/cdp?ticket=t%2B"},
		{"trusted proxy", "", "10.1.2.3:5", false, forwarded, "wss://stasis.example/v1/sessions/s/cdp?ticket=t%2B"},
		{"trusted, mapped", "", "[::ffff:10.1.2.3]:5", false, forwarded, "wss://stasis.example/v1/sessions/s/cdp?ticket=t%2B"},
		{"trusted, not a host", "", "10.1.2.3:5", false, http.Header{"X-Forwarded-Host": {"a/b"}}, "ws://here:8080/v1/sessions/s/cdp?ticket=t%2B"},
		{"public URL", "https://pub.example/stasis/", "10.1.2.3:5", false, forwarded, "wss://pub.example/stasis/v1/sessions/s/cdp?ticket=t%2B"},
	} {
		o := origins{proxies: proxies}
		if x.public != "" {
			o.public, _ = url.Parse(x.public)
		}
		r := &http.Request{Host: "here:8080", RemoteAddr: x.remote, Header: x.header}
		if x.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := o.of(r).cdp("s", "", "t+"); got != x.want {
			t.Errorf("%s: got %s, want %s", x.name, got, x.want)
		}
	}
}

// A user ID may contain any UTF-8. It reaches the service unchanged after one unescaping.
func TestUserIDsInPaths(t *testing.T) {
	r := newRig(t, nil)
	for _, id := range []string{"alice", "a/b", "a%2Fb", "a b+c", "..", "ü/ö?#", "x%20y", "user@example.com", "a;b"} {
		r.users = nil
		path := "/v1/users/" + strings.ReplaceAll(url.PathEscape(id), ".", "%2E") + "/default"
		answer, body := r.do(t, "GET", path, "")
		if answer.StatusCode != 200 || len(r.users) != 1 || r.users[0] != id {
			t.Errorf("%q by %s: got %d %s, service saw %q", id, path, answer.StatusCode, body, r.users)
		}
	}
}

func TestFiles(t *testing.T) {
	r := newRig(t, nil)
	upload := func(query, kind, body string) (reply, string) {
		return r.do(t, "POST", "/v1/sessions/live-1/files"+query, body, "Content-Type: "+kind)
	}
	if answer, body := upload("?name=a%20%C3%BC.txt", "application/octet-stream", "hello"); answer.StatusCode != 201 || string(r.uploads["a ü.txt"]) != "hello" {
		t.Errorf("raw: got %d %s, kept %q", answer.StatusCode, body, r.uploads)
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "form.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte("in a form")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if answer, body := upload("", w.FormDataContentType(), form.String()); answer.StatusCode != 201 || string(r.uploads["form.bin"]) != "in a form" || !strings.Contains(body, `"size_bytes":9`) {
		t.Errorf("form: got %d %s, kept %q", answer.StatusCode, body, r.uploads)
	}
	if answer, body := upload("", "multipart/form-data; boundary=x", "--x--"); answer.StatusCode != 400 {
		t.Errorf("empty form: got %d %s", answer.StatusCode, body)
	}
	one := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"one\"\r\n\r\n1\r\n"
	field := "--x\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n2\r\n"
	for form, want := range map[string]int{
		one + "--x--":               201,
		one + one + "--x--":         400,
		one + field + one + "--x--": 400,
		one + "--x":                 400, // truncated after the file
		one[:len(one)-2]:            400, // truncated within the file
	} {
		delete(r.uploads, "one")
		answer, body := upload("", "multipart/form-data; boundary=x", form)
		if answer.StatusCode != want || (string(r.uploads["one"]) == "1") != (want == 201) {
			t.Errorf("%q: got %d %s, kept %q", form, answer.StatusCode, body, r.uploads["one"])
		}
	}
	if answer, body := upload("?name=big", "application/octet-stream", strings.Repeat("x", 1<<10+1)); answer.StatusCode != 413 || r.uploads["big"] != nil {
		t.Errorf("too large: got %d %s", answer.StatusCode, body)
	}

	if err := os.WriteFile(filepath.Join(r.dir, "ü.html"), []byte("<script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	answer, body := r.do(t, "GET", "/v1/sessions/live-1/files/%C3%BC.html", "")
	if body != "<script>" || answer.Header.Get("Content-Disposition") != "attachment; filename*=utf-8''%C3%BC.html" || answer.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("got %s %v", body, answer.Header)
	}
	if answer, body := r.do(t, "GET", "/v1/sessions/live-1/files/%C3%BC.html", "", "Range: bytes=1-3"); answer.StatusCode != 206 || body != "scr" {
		t.Errorf("range: got %d %q", answer.StatusCode, body)
	}
	if answer, _ := r.do(t, "GET", "/v1/sessions/live-1/files/none", ""); answer.StatusCode != 404 {
		t.Errorf("none: got %d", answer.StatusCode)
	}
}

func TestRequestIDsAndHeaders(t *testing.T) {
	r := newRig(t, nil)
	answer, _ := r.do(t, "GET", "/healthz", "", "X-Request-Id: mine-1")
	if got := answer.Header.Get("X-Request-Id"); got != "mine-1" {
		t.Errorf("a valid ID of the client: got %q", got)
	}
	answer, _ = r.do(t, "GET", "/v1/sessions/live-1/live?ticket="+viewTicket, "", "X-Request-Id: not fit", "Authorization: ")
	if got := answer.Header.Get("X-Request-Id"); got == "" || got == "not fit" {
		t.Errorf("an invalid ID: got %q", got)
	}
	for name, want := range map[string]string{"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'sha256-") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
	if !strings.Contains(r.log.String(), "route=/v1/sessions/:session_id/live ") {
		t.Errorf("log: %s", r.log)
	}
}

// A stop closes sockets with 1001, lets running requests finish, and returns when every
// handler has.
func TestServeStops(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Grace = time.Minute })
	r.block = make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(ctx, l) }()
	base := "http://" + l.Addr().String()

	ws, _, _, err := dial(t, base+"/v1/sessions/live-1/cdp?ticket="+goodTicket, nil)
	if err != nil {
		t.Fatal(err)
	}
	created := make(chan int, 1)
	go func() {
		req, _ := http.NewRequest(http.MethodPost, base+"/v1/sessions", nil)
		req.Header.Set("x-api-key", goodKey)
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		answer, err := client.Do(req)
		if err != nil {
			created <- 0
			return
		}
		_ = answer.Body.Close()
		created <- answer.StatusCode
	}()
	waitFor(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.creates) == 1 })
	stop()
	if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("socket: got %v", err)
	}
	select {
	case err := <-served:
		t.Errorf("returned %v before the request was done", err)
	default:
	}
	close(r.block)
	if got := <-created; got != 201 {
		t.Errorf("the running request: got %d", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// After the grace period, the context of a request that is still running is cancelled.
func TestServeCancelsSlowRequests(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Grace = time.Millisecond })
	ended := make(chan struct{})
	hs := &stubborn{started: make(chan struct{}), ended: ended}
	r.server.route(http.MethodGet, "/v1/stubborn", noAuth, hs.handle)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(ctx, l) }()
	left := make(chan struct{})
	go func() {
		defer close(left)
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		if answer, err := client.Get("http://" + l.Addr().String() + "/v1/stubborn"); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-hs.started
	stop()
	<-ended
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	<-left
}

// When the daemon stops, a one-shot session is still ended as its query says. Serve waits
// for that, even past the grace period and on sockets that net/http has released.
func TestServeWaitsForTheEndOfAOneShot(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Grace = time.Millisecond })
	r.serve = func(ctx context.Context, _ session.Conn) error {
		<-ctx.Done()
		return ctx.Err()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(ctx, l) }()
	ws, _, _, err := dial(t, "http://"+l.Addr().String()+"/v1/connect?save_snapshot_mode=filesystem", http.Header{"X-Api-Key": {goodKey}})
	if err != nil {
		t.Fatal(err)
	}
	gone := ws.CloseRead(t.Context()) // answers the closing handshake
	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	<-gone.Done()
	if len(r.ends) != 1 || r.ends[0].Mode != save.Filesystem {
		t.Errorf("ended %v", r.ends)
	}
}

type stubborn struct{ started, ended chan struct{} }

func (s *stubborn) handle(c *call) error {
	close(s.started)
	<-c.Request().Context().Done()
	close(s.ended)
	return c.Request().Context().Err()
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("timed out")
		}
	}
}
