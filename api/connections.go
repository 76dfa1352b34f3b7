package api

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// defaultConnections is how many connections may be open at once by default.
const defaultConnections = 4096

// connections limits how many connections are open. A new connection beyond the limit
// replaces the one that has waited longest without a request of a known key. So slow and
// idle clients cannot keep others out. If all connections serve such requests, the new one
// is closed.
type connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]*trackedConn
	waiting *list.List // of net.Conn; the longest wait is first
}

// trackedConn is one open connection.
type trackedConn struct {
	waits    *list.Element // element of waiting; nil while a request is served
	hijacked bool          // the connection ends with its request
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*trackedConn{}, waiting: list.New()}
}

// connState is the ConnState hook of the server.
func (o *connections) connState(c net.Conn, to http.ConnState) {
	switch to {
	case http.StateNew:
		if over := o.add(c); over != nil {
			go func() { _ = over.Close() }() // over TLS, Close takes up to 5 s if the client does not read
		}
	case http.StateIdle:
		o.wait(c)
	case http.StateHijacked:
		o.hijacked(c)
	case http.StateClosed:
		o.remove(c)
	}
}

// add tracks a connection. If there are too many, it returns the one to close.
func (o *connections) add(c net.Conn) (over net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.open) >= o.most {
		first := o.waiting.Front()
		if first == nil {
			return c
		}
		over = first.Value.(net.Conn)
		o.waiting.Remove(first)
		delete(o.open, over)
	}
	o.open[c] = &trackedConn{waits: o.waiting.PushBack(c)}
	return over
}

func (o *connections) wait(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := o.open[c]; at != nil && at.waits == nil {
		at.waits = o.waiting.PushBack(c)
	}
}

func (o *connections) hijacked(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := o.open[c]; at != nil {
		at.hijacked = true
	}
}

// serve marks the connection as serving a request of a known key until done is called. Such
// a connection is not closed in favour of others. If it is marked already, or c is nil, serve
// and done do nothing.
func (o *connections) serve(c net.Conn) (done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.open[c]
	if at == nil || at.waits == nil {
		return func() {}
	}
	o.waiting.Remove(at.waits)
	at.waits = nil
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		switch {
		case at.hijacked:
			delete(o.open, c)
		case o.open[c] == at: // the server may still read the rest of the body and send the answer
			at.waits = o.waiting.PushBack(c)
		}
	}
}

func (o *connections) remove(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := o.open[c]; at != nil && at.waits != nil {
		o.waiting.Remove(at.waits)
	}
	delete(o.open, c)
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf returns the connection of a request; nil in tests that serve without one.
func connectionOf(r *http.Request) net.Conn {
	c, _ := r.Context().Value(connectionKey{}).(net.Conn)
	return c
}
