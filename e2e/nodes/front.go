package nodes

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Front is a load balancer as operators have: it passes calls to the nodes in turn, and leaves
// out those whose /readyz does not answer 200. It ends the calls and sockets of a node whose
// /healthz answers nothing.
type Front struct {
	URL string

	nodes []*backend
	next  atomic.Int64
	proxy httputil.ReverseProxy
	serve http.Server
	stop  context.CancelFunc
	work  sync.WaitGroup
}

// backend is a node as the front sees it.
type backend struct {
	*url.URL
	ready atomic.Bool

	mu     sync.Mutex
	calls  context.Context // ends when the node answers nothing
	cancel context.CancelFunc
}

func newBackend(u *url.URL) *backend {
	b := &backend{URL: u}
	b.calls, b.cancel = context.WithCancel(context.Background())
	return b
}

// attach makes a call end with the node's calls.
func (b *backend) attach(ctx context.Context) (context.Context, context.CancelFunc) {
	b.mu.Lock()
	calls := b.calls
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(calls, cancel)
	return ctx, func() { stop(); cancel() }
}

// drop ends all calls of the node.
func (b *backend) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancel()
	b.calls, b.cancel = context.WithCancel(context.Background())
}

const (
	// checkEvery is the time between two checks of a node, and the limit of one.
	checkEvery = 500 * time.Millisecond
	// silentChecks is how many checks in a row a node may leave unanswered.
	silentChecks = 3
	// dialDeadline is how long the front waits for a connection to a node.
	dialDeadline = 2 * time.Second
)

// startFront starts a front at an address.
func startFront(address string, nodes []string) (*Front, error) {
	f := &Front{URL: "http://" + address}
	for _, n := range nodes {
		u, err := url.Parse(n)
		if err != nil {
			return nil, err
		}
		f.nodes = append(f.nodes, newBackend(u))
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	f.proxy = httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(r.In.Context().Value(picked{}).(*backend).URL)
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: dialDeadline}).DialContext, MaxIdleConnsPerHost: 8},
		ErrorLog:  log.New(io.Discard, "", 0), // nodes die; clients get 502
	}
	f.serve = http.Server{Handler: f, ReadHeaderTimeout: dialDeadline}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	for _, b := range f.nodes {
		f.work.Go(func() { check(ctx, b) })
	}
	f.work.Go(func() { _ = f.serve.Serve(l) }) // until close
	return f, nil
}

// picked is the key of the node of a call in its context.
type picked struct{}

// ServeHTTP implements [http.Handler].
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b := f.pick()
	ctx, done := b.attach(r.Context())
	defer done()
	f.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, picked{}, b)))
}

// pick returns the next ready node; if none is ready, the next one.
func (f *Front) pick() *backend {
	for range f.nodes {
		if b := f.nodes[int(f.next.Add(1))%len(f.nodes)]; b.ready.Load() {
			return b
		}
	}
	return f.nodes[int(f.next.Add(1))%len(f.nodes)]
}

// check checks a node until the front ends.
func check(ctx context.Context, b *backend) {
	client := &http.Client{Timeout: 2 * checkEvery, Transport: &http.Transport{DisableKeepAlives: true}}
	silent := 0
	for next := time.NewTicker(checkEvery); ; {
		ready := answers(ctx, client, b.String()+"/readyz")
		b.ready.Store(ready)
		if silent++; ready || answers(ctx, client, b.String()+"/healthz") {
			silent = 0
		}
		if silent == silentChecks {
			b.drop()
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return
		}
	}
}

// answers reports whether a URL answers 200.
func answers(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

func (f *Front) close() error {
	f.stop()
	err := f.serve.Close()
	f.work.Wait()
	return err
}
