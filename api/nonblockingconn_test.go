package api

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// connPair returns a nonblockingConn and its peer.
func connPair(t *testing.T) (*nonblockingConn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	return &nonblockingConn{Conn: conn, raw: raw}, peer
}

// Small writes to a peer that does not read never block, and the queue is limited. When the
// peer reads, everything arrives in order, before later writes.
func TestSmallWritesDoNotBlock(t *testing.T) {
	conn, peer := connPair(t)
	var sent []byte
	write := func(n int) error {
		b := bytes.Repeat([]byte{byte(len(sent) / 1000)}, n)
		_, err := conn.Write(b)
		if err == nil {
			sent = append(sent, b...)
		}
		return err
	}
	for conn.idle() {
		if err := write(10_000); err != nil {
			t.Fatal(err)
		}
	}
	var full error
	for most := 64 << 20; full == nil && most > 0; most -= 1000 { // the kernel may have larger buffers, but not that large
		full = write(1000)
	}
	if !errors.Is(full, errQueueFull) {
		t.Fatalf("the queue has no limit: %v", full)
	}
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(peer) // the bytes are compared below
		got <- all
	}()
	if err := write(2 * smallWrite); err != nil { // blocks, and is written directly
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if all := <-got; !bytes.Equal(all, sent) {
		t.Errorf("%d bytes arrived, of %d", len(all), len(sent))
	}
}

// Close does not wait for a peer that does not read, and leaves no goroutine.
func TestCloseDoesNotBlock(t *testing.T) {
	conn, _ := connPair(t)
	for conn.idle() {
		if _, err := conn.Write(make([]byte, smallWrite)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("x")); err == nil || !conn.idle() {
		t.Errorf("after Close: %v, settled %v", err, conn.idle())
	}
}
