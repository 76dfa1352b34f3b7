//go:build linux

package main

import (
	"fmt"
	"net"
	"testing"
)

// What browsers may connect to, by the flags.
func TestEgressPolicy(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	for _, test := range []struct {
		name string
		cmd  serveCmd
		want string // "" if the flags are refused
	}{
		{"this machine alone", serveCmd{Listen: "127.0.0.1:8080"}, "true []"},
		{"by name", serveCmd{Listen: "localhost:8080"}, "true []"},
		{"all machines", serveCmd{Listen: "0.0.0.0:8080"}, "false []"},
		{"behind a proxy", serveCmd{Listen: "127.0.0.1:8080", PublicURL: "https://a.example"}, "false []"},
		{"nothing private", serveCmd{Listen: "127.0.0.1:8080", egressFlags: egressFlags{AllowPrivate: []string{"none"}}}, "false []"},
		{"a network and addresses", serveCmd{Listen: "0.0.0.0:8080", egressFlags: egressFlags{AllowPrivate: []string{"10.0.0.0/8", "192.168.1.1", "fd12::1"}}}, "false [10.0.0.0/8 192.168.1.1/32 fd12::1/128]"},
		{"a name", serveCmd{egressFlags: egressFlags{AllowPrivate: []string{"a.example"}}}, ""},
		{"nothing", serveCmd{egressFlags: egressFlags{AllowPrivate: []string{""}}}, ""},
		{"none and more", serveCmd{egressFlags: egressFlags{AllowPrivate: []string{"none", "10.0.0.0/8"}}}, ""},
		{"a mapped network", serveCmd{egressFlags: egressFlags{AllowPrivate: []string{"::ffff:10.0.0.0/104"}}}, ""},
		{"metadata", serveCmd{egressFlags: egressFlags{AllowPrivate: []string{"169.254.169.254/32"}}}, ""},
	} {
		err := test.cmd.egressFlags.check()
		if (err == nil) != (test.want != "") {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if p := test.cmd.egressPolicy(at); test.want != "" && (fmt.Sprint(p.Private, " ", p.Networks) != test.want || p.OwnPorts[0] != 8080) {
			t.Errorf("%s: got %+v, want %s", test.name, p, test.want)
		}
	}
}
