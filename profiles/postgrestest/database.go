package postgrestest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// Shared is a server that the tests of one binary share. Its zero value is ready; the server
// starts when a test first needs it.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
	n      atomic.Int64
}

// Server returns the server.
func (s *Shared) Server(t testing.TB) *Server {
	t.Helper()
	s.once.Do(func() { s.server, s.err = Start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

// Database creates an empty database and returns its URL. It is dropped when the test ends.
func (s *Shared) Database(t testing.TB) string {
	t.Helper()
	server := s.Server(t)
	name := fmt.Sprintf("test_%d", s.n.Add(1))
	if err := server.Exec(t.Context(), "postgres", "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Exec(context.WithoutCancel(t.Context()), "postgres", "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return server.URL(name)
}

// Stop ends the server, if it was started.
func (s *Shared) Stop() error {
	if s.server == nil {
		return nil
	}
	return s.server.Stop()
}

// Stopping returns a [testing.M] for goleak that stops the server after all tests.
func (s *Shared) Stopping(m *testing.M) Stopping { return Stopping{m, s} }

// Stopping runs tests and stops the server that they share.
type Stopping struct {
	tests  *testing.M
	server *Shared
}

// Run runs the tests and returns the exit code. A server that cannot be stopped is a failure.
func (s Stopping) Run() int {
	code := s.tests.Run()
	if err := s.server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
