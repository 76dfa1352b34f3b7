package api

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// defaultConnections is how many connections the daemon has open at once.
const defaultConnections = 4096

// connections bounds how many connections are open. When one more comes, that
// which has waited longest without a request of a known key being served is closed:
// slow and idle clients cannot keep others out. Where all serve such requests, the new
// one is closed.
type connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]*place
	waiting *list.List // of net.Conn, the longest first
}

// place is one open connection.
type place struct {
	waits    *list.Element // in waiting; nil: a request is being served
	hijacked bool          // it ends with its request
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*place{}, waiting: list.New()}
}

// changed is the server's ConnState.
func (o *connections) changed(c net.Conn, to http.ConnState) {
	switch to {
	case http.StateNew:
		if over := o.add(c); over != nil {
			go func() { _ = over.Close() }() // for TLS it takes up to 5 s where the client does not read
		}
	case http.StateIdle:
		o.wait(c)
	case http.StateHijacked:
		o.hijacked(c)
	case http.StateClosed:
		o.remove(c)
	}
}

// add counts a connection, and gives the one to close where there are too many.
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
	o.open[c] = &place{waits: o.waiting.PushBack(c)}
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

// serve notes that a request of the connection is being served for a key that is
// known, until done: it is not closed for others meanwhile.
func (o *connections) serve(c net.Conn) (done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.open[c]
	if at == nil {
		return func() {}
	}
	if at.waits != nil {
		o.waiting.Remove(at.waits)
		at.waits = nil
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		switch {
		case at.hijacked:
			delete(o.open, c)
		case o.open[c] == at: // the server may still read the body's rest, and send
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

// connectionKey is where a request's context has its connection.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf is the connection of a request, nil where a test serves without one.
func connectionOf(r *http.Request) net.Conn {
	c, _ := r.Context().Value(connectionKey{}).(net.Conn)
	return c
}
