package mux

import (
	"net"
	"sync"
	"testing"
)

// BenchmarkRoundTrip is a client's call through the mux to a Chrome that
// answers at once, and back.
func BenchmarkRoundTrip(b *testing.B) {
	m, stop := benchmarkMux(b)
	defer stop()
	c := newConn(&testing.T{})
	done := make(chan error, 1)
	go func() { done <- m.Serve(b.Context(), c, ServeOptions{}) }()
	msg := []byte(`{"id":1,"method":"Runtime.evaluate","params":{"expression":"1"}}`)
	b.ReportAllocs()
	for b.Loop() {
		c.in <- msg
		<-c.out
	}
	close(c.in)
	if err := <-done; err != nil {
		b.Error(err)
	}
}

func benchmarkMux(b *testing.B) (*Mux, func()) {
	ours, chrome := net.Pipe()
	f := &fake{t: &testing.T{}, conn: chrome}
	f.cond = sync.NewCond(&f.mu)
	f.loop.Go(f.run)
	m := New(ours, Options{})
	return m, func() {
		if err := m.Close(); err != nil {
			b.Error(err)
		}
		_ = chrome.Close()
		f.loop.Wait()
	}
}
