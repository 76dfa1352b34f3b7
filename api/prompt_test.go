package api

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// promptPair is a prompt connection and its peer.
func promptPair(t *testing.T) (*prompt, net.Conn) {
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
	return &prompt{Conn: conn, raw: raw}, peer
}

// Small writes to a peer that does not read never wait, what they leave behind
// is bounded, and all of it arrives in order once the peer reads, before what
// is written after it.
func TestPromptWritesBehind(t *testing.T) {
	conn, peer := promptPair(t)
	var sent []byte
	write := func(n int) error {
		b := bytes.Repeat([]byte{byte(len(sent) / 1000)}, n)
		_, err := conn.Write(b)
		if err == nil {
			sent = append(sent, b...)
		}
		return err
	}
	for conn.settled() {
		if err := write(10_000); err != nil {
			t.Fatal(err)
		}
	}
	var full error
	for most := 64 << 20; full == nil && most > 0; most -= 1000 { // the kernel may find more room, though not that much
		full = write(1000)
	}
	if !errors.Is(full, errBehind) {
		t.Fatalf("far too much written behind: %v", full)
	}
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(peer) // what came is compared
		got <- all
	}()
	if err := write(2 * smallWrite); err != nil { // waits, and is written as it is
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if all := <-got; !bytes.Equal(all, sent) {
		t.Errorf("%d bytes came, of %d", len(all), len(sent))
	}
}

// Close does not wait for a peer that does not read, and leaves nobody behind.
func TestPromptClosesAtOnce(t *testing.T) {
	conn, _ := promptPair(t)
	for conn.settled() {
		if _, err := conn.Write(make([]byte, smallWrite)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("x")); err == nil || !conn.settled() {
		t.Errorf("after Close: %v, settled %v", err, conn.settled())
	}
}
