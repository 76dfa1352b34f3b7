package relay

import (
	"net"
	"sync"
)

// takenListener is a listener whose connections are given to it.
type takenListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newTakenListener() *takenListener {
	return &takenListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// take gives the listener a connection, which is closed if the listener is.
func (t *takenListener) take(conn net.Conn) {
	select {
	case t.conns <- conn:
	case <-t.done:
		_ = conn.Close()
	}
}

// Accept implements [net.Listener].
func (t *takenListener) Accept() (net.Conn, error) {
	select {
	case conn := <-t.conns:
		return conn, nil
	case <-t.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (t *takenListener) Close() error {
	t.once.Do(func() { close(t.done) })
	return nil
}

// Addr implements [net.Listener].
func (t *takenListener) Addr() net.Addr { return &net.TCPAddr{} }
