// Package weblog records the requests to a site, so that a test can check which requests
// a browser made, and above all which it did not make.
package weblog

import (
	"net/http"
	"sync"
	"time"
)

// Request is one request that reached a site.
type Request struct {
	Method string
	Host   string // of the Host header, with the port
	Path   string // without the query
	Time   time.Time
}

// Log records requests in the order of their arrival. It is safe for concurrent use.
// Make it with [New]; the zero value does not work.
type Log struct {
	now      func() time.Time
	mu       sync.Mutex
	requests []Request
}

// New returns an empty log that reads the clock from now.
func New(now func() time.Time) *Log { return &Log{now: now} }

// Wrap returns a handler that logs each request before next serves it.
func (l *Log) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.add(Request{Method: r.Method, Host: r.Host, Path: r.URL.Path, Time: l.now()})
		next.ServeHTTP(w, r)
	})
}

func (l *Log) add(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
}

// Len returns the number of requests so far, for a later [Log.Since].
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests)
}

// Since returns a copy of the requests after the first n.
func (l *Log) Since(n int) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= len(l.requests) {
		return nil
	}
	return append([]Request(nil), l.requests[n:]...)
}
