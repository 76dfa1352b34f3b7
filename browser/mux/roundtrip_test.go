package mux

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// BenchmarkRoundTrip measures a client's call through the mux to a Chrome that answers at
// once, and the answer: two messages.
func BenchmarkRoundTrip(b *testing.B) { roundTrips(b, "{}") }

// BenchmarkLargeRoundTrip is the same with an answer of a screenshot's size.
func BenchmarkLargeRoundTrip(b *testing.B) {
	roundTrips(b, `{"data":"`+strings.Repeat("iVBORw0KGgo", 100_000)+`"}`)
}

// BenchmarkNonblockingRoundTrip measures a client's call if nothing is queued, over pipes like
// Chrome's and to a client that accepts messages at once. No goroutine of the mux wakes
// another.
func BenchmarkNonblockingRoundTrip(b *testing.B) {
	fromUs, toChrome := osPipe(b)
	fromChrome, toUs := osPipe(b)
	through(b, nonblockingPipe{fromChrome, toChrome}, joined{fromUs, toUs}, &nonblockingConn{testConn: newConn(&testing.T{})}, "{}")
}

// BenchmarkEvent measures an event of a page until its client accepts it at once.
func BenchmarkEvent(b *testing.B) {
	ours, chrome := net.Pipe()
	answered := make(chan struct{})
	go func() { defer close(answered); answer(chrome, "{}") }()
	m := New(ours, Options{})
	c := &nonblockingConn{testConn: newConn(&testing.T{})}
	done := make(chan error, 1)
	go func() { done <- m.Serve(b.Context(), c, ServeOptions{}) }()
	c.in <- []byte(`{"id":1,"method":"Network.enable"}`)
	<-c.out // the session S1 exists, and the reader of the pipe waits
	msg := []byte(`{"method":"Network.dataReceived","params":{"requestId":"1000.1","timestamp":123.4,"dataLength":1000,"encodedDataLength":0},"sessionId":"S1"}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		m.route(msg)
		<-c.out
	}
	close(c.in)
	if err := errors.Join(<-done, m.Close(), chrome.Close()); err != nil {
		b.Error(err)
	}
	<-answered
}

func roundTrips(b *testing.B, result string) {
	ours, chrome := net.Pipe()
	through(b, ours, chrome, newConn(&testing.T{}), result)
}

// through sends calls from c through a mux on ours to chrome, and reads the answers.
func through(b *testing.B, ours, chrome io.ReadWriteCloser, c interface {
	Conn
	ends() (in, out chan []byte)
}, result string) {
	answered := make(chan struct{})
	go func() { defer close(answered); answer(chrome, result) }()
	m := New(ours, Options{})
	in, out := c.ends()
	done := make(chan error, 1)
	go func() { done <- m.Serve(b.Context(), c, ServeOptions{}) }()
	msg := []byte(`{"id":1,"method":"Runtime.evaluate","params":{"expression":"1"}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(msg) + len(result)))
	for b.Loop() {
		in <- msg
		<-out
	}
	close(in)
	if err := <-done; err != nil {
		b.Error(err)
	}
	if err := m.Close(); err != nil {
		b.Error(err)
	}
	_ = chrome.Close()
	<-answered
}

// answer is a Chrome that attaches every client and answers everything else with result.
// It stores and decodes nothing, so that the measurement shows only the mux.
func answer(chrome io.ReadWriter, result string) {
	in := frames{r: chrome}
	var out []byte
	for {
		raw, _, err := in.next()
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
