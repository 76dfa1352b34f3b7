package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync"
)

// devToolsPort answers like Chrome's port for remote debugging (content/browser/devtools,
// devtools_http_handler.cc), for the browser of one session.
type devToolsPort struct {
	daemon  remoteDaemon
	session string
	version browserVersion
	closing context.Context // sockets are closed when it ends
	sockets sync.WaitGroup
}

// path returns a path of the session at the daemon.
func (p *devToolsPort) path(elements ...string) string {
	at := "/v1/sessions/" + url.PathEscape(p.session)
	for _, e := range elements {
		at += "/" + url.PathEscape(e)
	}
	return at
}

// ServeHTTP serves one request of a program on this machine.
func (p *devToolsPort) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := foreign(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	at := strings.TrimSuffix(r.URL.Path, "/")
	if socket, ok := strings.CutPrefix(at, "/devtools/"); ok {
		kind, id, _ := strings.Cut(socket, "/")
		switch {
		case kind == "browser":
			p.bridge(w, r, p.path("cdp"))
		case kind == "page" && id != "":
			p.bridge(w, r, p.path("cdp", "page", id))
		default:
			http.NotFound(w, r)
		}
		return
	}
	switch {
	case at == "/json" || at == "/json/list":
		p.list(w, r)
	case at == "/json/version":
		p.answerVersion(w, r)
	case at == "/json/new":
		p.open(w, r)
	case strings.HasPrefix(at, "/json/activate/"):
		p.act(w, r, "Target.activateTarget", "Target activated")
	case strings.HasPrefix(at, "/json/close/"):
		p.act(w, r, "Target.closeTarget", "Target is closing")
	default:
		http.NotFound(w, r)
	}
}

// foreign returns why a request is refused: a web page sent it, or a page could have. A
// Host that is neither localhost nor an address may be a name of a web site that its owner
// points at this machine (DNS rebinding). Chrome's own port checks both too. Programs send
// no Origin.
func foreign(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err != nil && host != "" && host != "localhost" && !strings.HasSuffix(host, ".localhost") {
		return "Host: must be localhost or an IP address"
	}
	if r.Header.Get("Origin") != "" {
		return "Origin: web pages may not use this port"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return ""
	}
	return "Sec-Fetch-Site: web pages may not use this port"
}

func (p *devToolsPort) answerVersion(w http.ResponseWriter, r *http.Request) {
	// Clients take WebKit's version from the User-Agent's form: 537.36 since Chrome 28.
	answerJSON(w, map[string]string{
		"Browser": p.version.Product, "Protocol-Version": p.version.Protocol, "User-Agent": p.version.Agent,
		"V8-Version": p.version.V8, "WebKit-Version": "537.36 (" + p.version.Revision + ")",
		"webSocketDebuggerUrl": "ws://" + r.Host + "/devtools/browser/" + p.session,
	})
}

// target describes a page as Chrome's json/list does.
func (p *devToolsPort) target(host string, t page) map[string]string {
	socket := host + "/devtools/page/" + t.ID
	return map[string]string{
		"description": "", "id": t.ID, "type": cmp.Or(t.Type, "page"), "title": t.Title, "url": t.URL,
		"devtoolsFrontendUrl":  "https://chrome-devtools-frontend.appspot.com/serve_rev/" + p.version.Revision + "/inspector.html?ws=" + socket,
		"webSocketDebuggerUrl": "ws://" + socket,
	}
}

func (p *devToolsPort) list(w http.ResponseWriter, r *http.Request) {
	pages, err := p.pages(r.Context())
	if err != nil {
		failed(w, err)
		return
	}
	targets := make([]map[string]string, 0, len(pages))
	for _, t := range pages {
		targets = append(targets, p.target(r.Host, t))
	}
	answerJSON(w, targets)
}

// open opens a tab. The whole query is its address, as at Chrome's port.
func (p *devToolsPort) open(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		w.Header().Set("Allow", http.MethodPut)
		http.Error(w, "Using unsafe HTTP verb "+r.Method+" to invoke /json/new. This action supports only PUT verb.", http.StatusMethodNotAllowed)
		return
	}
	address, err := url.PathUnescape(r.URL.RawQuery)
	if err != nil {
		http.Error(w, "the address is not URL-encoded", http.StatusBadRequest)
		return
	}
	address = cmp.Or(address, "about:blank")
	result, err := p.command(r.Context(), "Target.createTarget", map[string]any{"url": address})
	if err != nil {
		failed(w, err)
		return
	}
	var made struct {
		ID string `json:"targetId"`
	}
	if err := json.Unmarshal(result, &made); err != nil {
		failed(w, err)
		return
	}
	answerJSON(w, p.target(r.Host, page{ID: made.ID, URL: address}))
}

// act sends a command about one tab.
func (p *devToolsPort) act(w http.ResponseWriter, r *http.Request, method, done string) {
	id := path.Base(r.URL.Path)
	_, err := p.command(r.Context(), method, map[string]any{"targetId": id})
	var refused cdpRefusal
	if errors.As(err, &refused) {
		http.Error(w, "No such target id: "+id, http.StatusNotFound)
		return
	}
	if err != nil {
		failed(w, err)
		return
	}
	_, _ = w.Write([]byte(done)) // a client that has gone needs no answer
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	out := json.NewEncoder(w)
	out.SetIndent("", "   ")
	_ = out.Encode(v) // a client that has gone needs no answer
}

// failed answers that the daemon did not do it.
func failed(w http.ResponseWriter, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}
