// Package freeport finds ports for the servers of tests that must know their port before they
// listen, or that listen there again later. Other servers listen at port 0.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Linux takes the ports of outgoing connections, and those for port 0, from 32768 on unless it is
// set up otherwise. A port below that is in use only if a program has asked for it.
const (
	lowest  = 10000
	highest = 32767
	tries   = 100
)

// Find returns a port of 127.0.0.1 and ::1 at which nothing listens, over TCP and UDP.
func Find() (int, error) {
	for range tries {
		if port := lowest + rand.IntN(highest-lowest+1); free(port) {
			return port, nil
		}
	}
	return 0, errors.New("freeport: no free port found on 127.0.0.1")
}

// Address is [Find] as an address of 127.0.0.1, such as "127.0.0.1:23456".
func Address() (string, error) {
	port, err := Find()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// free reports whether nothing listens at a port. A machine without IPv6 has only 127.0.0.1.
func free(port int) bool {
	for _, host := range []string{"127.0.0.1", "::1"} {
		at := net.JoinHostPort(host, strconv.Itoa(port))
		l, err := net.Listen("tcp", at)
		if errors.Is(err, syscall.EADDRINUSE) || err == nil && l.Close() != nil {
			return false
		}
		p, err := net.ListenPacket("udp", at)
		if errors.Is(err, syscall.EADDRINUSE) || err == nil && p.Close() != nil {
			return false
		}
	}
	return true
}
