// Package apps starts web applications that tests log in to: real ones that
// nobody here wrote (DokuWiki, Node-RED) and a probe site that keeps state in
// every place a browser has.
//
// Each application listens on loopback, on a port that the system chose, has
// its own writable folder and one known account, is ready when the function
// that starts it returns, and is gone with the test that asked for it. A small
// reverse proxy stands before it and logs every request.
package apps

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/apps/weblog"
)

// readyIn is how long an application may take to answer its first request.
const readyIn = 60 * time.Second

// App is a running web application.
type App struct {
	URL      string // of its front page, without a trailing slash
	User     string
	Password string
	Log      *weblog.Log // every request that came in by URL
}

// front puts a logging reverse proxy before the application at backend and
// returns the proxy's URL. The browser's Host header passes through, so that
// redirects and cookies fit the proxy; WebSockets pass too.
func front(t testing.TB, backend string) (string, *weblog.Log) {
	t.Helper()
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatalf("apps: %v", err)
	}
	log := weblog.New(time.Now)
	proxy := httptest.NewServer(log.Wrap(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		// A browser that goes away in the middle of an answer is no news.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return proxy.URL, log
}

// serve starts the application that command makes for a port, waits until path
// answers there and returns its URL. Between asking for a free port and
// listening on it, somebody else may take it: then the application ends early
// and another port is tried.
func serve(t testing.TB, name, path string, command func(port int) *exec.Cmd) string {
	t.Helper()
	var p *process
	for range 3 {
		port := freePort(t)
		backend := fmt.Sprintf("http://127.0.0.1:%d", port)
		p = start(t, name, command(port))
		if waitReady(t, p, backend+path) {
			return backend
		}
	}
	t.Fatalf("apps: %s ended before it was ready:\n%s", name, p.output())
	return ""
}

// waitReady polls url until it answers with a status below 500. It is false
// when the process ended first; the test fails when readyIn has passed.
func waitReady(t testing.TB, p *process, url string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyIn)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.done: // looked at first: the port may be answered by whoever took it
			return false
		default:
		}
		if answers(ctx, url) {
			return true
		}
		select {
		case <-tick.C:
		case <-p.done:
			return false
		case <-ctx.Done():
			t.Fatalf("apps: %s was not ready in %s:\n%s", p.name, readyIn, p.output())
		}
	}
}

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close() == nil && err == nil && resp.StatusCode < http.StatusInternalServerError
}

// freePort asks the system for a TCP port that nothing listens on now.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("apps: %v", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatalf("apps: %v", err)
	}
	return port
}
