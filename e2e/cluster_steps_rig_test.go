package e2e

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// wireSteps stands between a node and its database and bucket. Each piece of bytes that the node
// sends is a step. At a chosen one it stops the node.
type wireSteps struct {
	mu    sync.Mutex
	at    int // the step at which it stops the node; 0: none
	count int
	// late: the piece at which the node stops arrives only when the node continues, like one that
	// the network has held back. Otherwise it arrives at once, and its answer waits.
	late      bool
	stop      func()
	stopped   chan struct{} // closed when the node has stopped
	continued chan struct{} // closed when it continues

	database, store string // what the node is given instead of those of the cluster
}

// newWireSteps makes one for a node that is added next.
func (c *cluster) newWireSteps(t *testing.T) *wireSteps {
	t.Helper()
	s := &wireSteps{stopped: make(chan struct{}), continued: make(chan struct{})}
	database, err := url.Parse(c.server.URL("stasis"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "sd-") // short, because paths of sockets are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	socket := ".s.PGSQL." + database.Query().Get("port")
	s.pass(t, "unix", filepath.Join(dir, socket), filepath.Join(database.Query().Get("host"), socket))
	query := database.Query()
	query.Set("host", dir)
	database.RawQuery = query.Encode()
	s.database = database.String()
	s.store = strings.Replace(c.store.URL("stasis"), c.store.Endpoint, s.pass(t, "tcp", "127.0.0.1:0", c.store.Endpoint), 1)
	return s
}

// pass passes connections to an address on to another one, until the test ends. It returns the
// address.
func (s *wireSteps) pass(t *testing.T, network, address, to string) string {
	t.Helper()
	l, err := net.Listen(network, address) //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	t.Cleanup(func() { _ = l.Close() })
	work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			server, err := net.Dial(network, to) //nolint:noctx // of a server on this machine
			if err != nil {
				_ = client.Close()
				continue
			}
			work.Go(func() { copyPieces(server, client, s.step) })
			work.Go(func() { copyPieces(client, server, func() {}) })
		}
	})
	return l.Addr().String()
}

// copyPieces copies from one connection to another until either closes. It calls each before it
// writes a piece.
func copyPieces(to, from net.Conn, each func()) {
	defer func() { _, _ = to.Close(), from.Close() }()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			each()
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// step counts a step, and stops the node if it is the chosen one.
func (s *wireSteps) step() {
	s.mu.Lock()
	s.count++
	is := s.at > 0 && s.count == s.at
	if is {
		s.stop()
		close(s.stopped)
	}
	late := s.late
	s.mu.Unlock()
	if is && late {
		<-s.continued
	}
}

// arm begins to count. Step at stops the node; 0: none does.
func (s *wireSteps) arm(at int, late bool, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count, s.at, s.late, s.stop = 0, at, late, stop
}

// counted returns the number of steps since arm.
func (s *wireSteps) counted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// isStopped reports whether the node has reached its step. If not, it can no longer do so.
func (s *wireSteps) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stopped:
		return true
	default:
		s.at = 0
		return false
	}
}
