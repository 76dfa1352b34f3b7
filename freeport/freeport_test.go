package freeport

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// A port that TCP or UDP has on either address is not free.
func TestFree(t *testing.T) {
	port, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if port >= 32768 {
		t.Errorf("port %d is one of those that outgoing connections get", port)
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		at := net.JoinHostPort(host, strconv.Itoa(port))
		l, err := net.Listen("tcp", at)
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			continue // the machine has no IPv6
		}
		if err != nil {
			t.Fatal(err)
		}
		if free(port) {
			t.Errorf("port %d counts as free, but a server has it over TCP on %s", port, host)
		}
		l.Close()
		p, err := net.ListenPacket("udp", at)
		if err != nil {
			t.Fatal(err)
		}
		if free(port) {
			t.Errorf("port %d counts as free, but a server has it over UDP on %s", port, host)
		}
		p.Close()
	}
	if !free(port) {
		t.Errorf("port %d is not free again", port)
	}
}
