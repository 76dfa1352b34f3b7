// Package webapp runs web applications that have a login and that nobody here wrote:
// DokuWiki, Node-RED and phpLiteAdmin.
//
// Each application listens on loopback, on a port that the system chose, writes to
// one folder, has one known account, and is ready when the function that starts it
// returns. A small reverse proxy stands before it and logs every request.
package webapp

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
	"time"

	"github.com/stasisd/stasis/e2e/apps/weblog"
)

// readyIn is how long an application may take to answer its first request.
const readyIn = 60 * time.Second

// App is a running web application.
type App struct {
	URL      string // of its front page, without a trailing slash
	User     string // "" where a password alone is asked for
	Password string
	Log      *weblog.Log // every request that came in by URL

	process *process
	proxy   *httptest.Server
}

// Close ends the application and its proxy, and waits until both have ended.
func (a *App) Close() {
	a.proxy.CloseClientConnections()
	a.proxy.Close()
	a.process.stop()
}

// serve starts the application that command makes for a port, waits until path
// answers there, and puts the proxy before it. Between asking for a free port and
// listening on it, somebody else may take it: then the application ends early
// and another port is tried.
func (a *App) serve(name, path string, command func(port int) *exec.Cmd) error {
	var last *process
	for range 3 {
		port, err := freePort()
		if err != nil {
			return err
		}
		backend := fmt.Sprintf("http://127.0.0.1:%d", port)
		if last, err = start(name, command(port)); err != nil {
			return err
		}
		ready, err := last.answers(backend + path)
		if ready {
			a.process = last
			return a.front(backend)
		}
		if last.stop(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s ended before it was ready:\n%s", name, last.output())
}

// front puts a logging reverse proxy before the application at backend. The
// browser's Host header passes through, so that redirects and cookies fit the
// proxy; WebSockets pass too.
func (a *App) front(backend string) error {
	target, err := url.Parse(backend)
	if err != nil {
		return err
	}
	a.Log = weblog.New(time.Now)
	a.proxy = httptest.NewServer(a.Log.Wrap(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		// A browser that goes away in the middle of an answer is no news.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}))
	a.URL = a.proxy.URL
	return nil
}

// answers polls url until it answers with a status below 500. It is false when
// the process ended first, and an error when readyIn has passed.
func (p *process) answers(url string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readyIn)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.done: // looked at first: the port may be answered by whoever took it
			return false, nil
		default:
		}
		if answers(ctx, url) {
			return true, nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return false, nil
		case <-ctx.Done():
			return false, fmt.Errorf("%s was not ready in %s:\n%s", p.name, readyIn, p.output())
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
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
