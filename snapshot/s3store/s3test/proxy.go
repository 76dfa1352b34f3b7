package s3test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Fault is what happens to one request.
type Fault struct {
	kind   kind
	status int
	code   string
}

type kind int

const (
	pass kind = iota
	answer
	cutUpload
	loseAnswer
	cutDownload
	hang
)

var (
	// Pass lets a request through.
	Pass = Fault{}
	// CutUpload reads half of the body and drops the connection.
	CutUpload = Fault{kind: cutUpload}
	// LoseAnswer forwards the request and drops the connection.
	LoseAnswer = Fault{kind: loseAnswer}
	// CutDownload forwards the request, sends half of the response body and drops the
	// connection.
	CutDownload = Fault{kind: cutDownload}
	// Hang reads the request and never responds.
	Hang = Fault{kind: hang}
)

// Answer refuses a request with a status and an S3 error code.
func Answer(status int, code string) Fault { return Fault{answer, status, code} }

// Proxy forwards requests to a server and makes those in its plan fail.
type Proxy struct {
	Endpoint string // host:port
	server   string
	done     chan struct{}

	mu   sync.Mutex
	plan func(*http.Request) Fault
	seen []string
}

// NewProxy runs a proxy until the test ends.
func NewProxy(t testing.TB, s *Server) *Proxy {
	p, listener := newProxy(s)
	listener.Start()
	p.runUntilEnd(t, listener)
	return p
}

// NewTLSProxy is NewProxy with HTTPS. certificate is a file with its certificate.
func NewTLSProxy(t testing.TB, s *Server) (p *Proxy, certificate string) {
	t.Helper()
	p, listener := newProxy(s)
	listener.Config.ErrorLog = log.New(io.Discard, "", 0) // errors of clients that do not trust the certificate
	listener.StartTLS()
	p.runUntilEnd(t, listener)
	certificate = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listener.Certificate().Raw})
	if err := os.WriteFile(certificate, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return p, certificate
}

func newProxy(s *Server) (*Proxy, *httptest.Server) {
	p := &Proxy{server: s.Endpoint, done: make(chan struct{}), plan: func(*http.Request) Fault { return Pass }}
	return p, httptest.NewUnstartedServer(p)
}

func (p *Proxy) runUntilEnd(t testing.TB, listener *httptest.Server) {
	t.Cleanup(func() {
		close(p.done) // ends the hanging requests
		listener.Close()
	})
	p.Endpoint = listener.Listener.Addr().String()
}

// Plan sets the fault of each request from now on. plan is called for one request after
// the other, and may change the request.
func (p *Proxy) Plan(plan func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.seen = plan, nil
}

// Seen lists the methods of the requests since Plan.
func (p *Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

// Times makes the first n requests of a method fail.
func Times(n int, method string, f Fault) func(*http.Request) Fault {
	return func(r *http.Request) Fault {
		if r.Method != method || n == 0 {
			return Pass
		}
		n--
		return f
	}
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	f := p.plan(r)
	p.seen = append(p.seen, r.Method)
	p.mu.Unlock()
	switch f.kind {
	case answer:
		_, _ = io.Copy(io.Discard, r.Body) // a real server too lets the client finish
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(f.status)
		if r.Method != http.MethodHead {
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>planned</Message></Error>", f.code)
		}
		return
	case cutUpload:
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		panic(http.ErrAbortHandler)
	case hang:
		select {
		case <-r.Context().Done():
		case <-p.done:
		}
		panic(http.ErrAbortHandler)
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", p.server, ""
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = res.Body.Close() }() // it was only read from
	if f.kind == loseAnswer {
		_, _ = io.Copy(io.Discard, res.Body)
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), res.Header)
	w.WriteHeader(res.StatusCode)
	if f.kind == cutDownload {
		length, _ := strconv.ParseInt(res.Header.Get("Content-Length"), 10, 64)
		_, _ = io.CopyN(w, res.Body, length/2)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.Copy(w, res.Body) // the client may have disconnected
}

// IsComplete reports whether a request completes a multipart upload.
func IsComplete(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.Contains(r.URL.RawQuery, "uploadId=")
}
