package mux

import (
	"bytes"
	"net"
	"strings"
	"testing"
)

// BenchmarkRoundTrip is a client's call through the mux to a Chrome that
// answers at once, and back: two messages.
func BenchmarkRoundTrip(b *testing.B) { roundTrips(b, "{}") }

// BenchmarkLargeRoundTrip is the same with an answer like a screenshot's.
func BenchmarkLargeRoundTrip(b *testing.B) {
	roundTrips(b, `{"data":"`+strings.Repeat("iVBORw0KGgo", 100_000)+`"}`)
}

func roundTrips(b *testing.B, result string) {
	ours, chrome := net.Pipe()
	answered := make(chan struct{})
	go func() { defer close(answered); answer(chrome, result) }()
	m := New(ours, Options{})
	c := newConn(&testing.T{})
	done := make(chan error, 1)
	go func() { done <- m.Serve(b.Context(), c, ServeOptions{}) }()
	msg := []byte(`{"id":1,"method":"Runtime.evaluate","params":{"expression":"1"}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(msg) + len(result)))
	for b.Loop() {
		c.in <- msg
		<-c.out
	}
	close(c.in)
	if err := <-done; err != nil {
		b.Error(err)
	}
	if err := m.Close(); err != nil {
		b.Error(err)
	}
	_ = chrome.Close()
	<-answered
}

// answer is a Chrome that attaches whoever asks and has one answer for all
// else. It keeps and decodes nothing, so that what is counted is the mux's.
func answer(chrome net.Conn, result string) {
	in := frames{r: chrome}
	var out []byte
	for {
		raw, err := in.next()
		if err != nil {
			return
		}
		e, err := scan(raw)
		if err != nil {
			return
		}
		gives := result
		if bytes.Contains(e.method, []byte("Target.attachTo")) {
			gives = `{"sessionId":"S1"}`
		}
		out = append(append(append(out[:0], `{"id":`...), e.id...), `,"result":`...)
		out = append(out, gives...)
		if e.session != nil {
			out = append(append(append(out, `,"sessionId":"`...), bytes.Trim(e.session, `"`)...), '"')
		}
		if _, err := chrome.Write(append(out, '}', 0)); err != nil {
			return
		}
	}
}
