// Package webapp runs real web applications with a login: DokuWiki, Node-RED and
// phpLiteAdmin.
//
// Each application listens on a free loopback port, writes to one folder and has one
// known account. It is ready when its start function returns. A small reverse proxy in
// front of it logs every request.
package webapp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"time"

	"github.com/stasisd/stasis/e2e/apps/weblog"
	"github.com/stasisd/stasis/freeport"
)

// readyIn is how long an application may take to answer its first request.
const readyIn = 60 * time.Second

// App is a running web application.
type App struct {
	URL      string // of its front page, without a trailing slash
	User     string // "" if the application has only a password
	Password string
	Log      *weblog.Log // every request that was received through URL

	process *process
	proxy   *httptest.Server
}

// Close stops the application and its proxy, and waits until both have ended.
func (a *App) Close() {
	a.proxy.CloseClientConnections()
	a.proxy.Close()
	a.process.stop()
}

// serve starts the application on a free port, waits until path answers there, and puts
// the proxy in front. Another process may take the port before the application listens.
// Then the application ends early and serve tries another port.
func (a *App) serve(name, path string, command func(port int) *exec.Cmd) error {
	var last *process
	for range 3 {
		port, err := freeport.Find()
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

// front puts a logging reverse proxy in front of the application at backend. The proxy
// keeps the browser's Host header, so that redirects and cookies fit. It also forwards
// WebSockets.
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
		// A browser that disconnects during an answer is not an error.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}))
	a.URL = a.proxy.URL
	return nil
}

// answers polls url until the status is below 500. It returns false if the process ends
// first, and an error after readyIn.
func (p *process) answers(url string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readyIn)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.done: // checked first: another process may have taken the port
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
