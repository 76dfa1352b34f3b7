//go:build linux

package netns

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	route4 = "Iface\tDestination\tGateway\tFlags\neth0\t00000000\t010200C0\t0003\n"
	route6 = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n"
	// A namespace has this one always; it refuses packets.
	noRoute6 = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n"
	loopback = "00000000000000000000000000000001 01 80 10 80       lo\n"
	ofLink   = "fe8000000000000000fc00fffe000001 02 40 20 80     eth0\n"
	global   = "fd000000000000000000000000000002 02 40 00 82     eth0\n"
)

// lists are the contents of the files of proc_pid_net(5), by name.
type lists map[string]string

func (l lists) write(t *testing.T, dir string) {
	t.Helper()
	for name, content := range l {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWaysOut(t *testing.T) {
	for _, tt := range []struct {
		name string
		net  lists
		want Families
	}{
		{"IPv6 is off", lists{"route": route4}, Families{IPv4: true}},
		{"both", lists{"route": route4, "ipv6_route": route6 + noRoute6, "if_inet6": loopback + ofLink + global}, Families{IPv4: true, IPv6: true}},
		{"only addresses of the link", lists{"route": route4, "ipv6_route": route6 + noRoute6, "if_inet6": loopback + ofLink}, Families{IPv4: true}},
		{"only IPv6", lists{"ipv6_route": route6, "if_inet6": global}, Families{IPv6: true}},
		{"no way out", lists{"route": "Iface\tDestination\neth0\t000200C0\t00000000\n", "ipv6_route": noRoute6, "if_inet6": loopback}, Families{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.net.write(t, dir)
			if got := waysOut(dir); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A Chrome starts when both families are there, or when the second has not come for a while.
func TestAwaitPasta(t *testing.T) {
	four, six := lists{"route": route4}, lists{"ipv6_route": route6, "if_inet6": global}
	for _, tt := range []struct {
		name     string
		expected Families
		// The lists change after a second and after another one.
		first, second lists
		want          time.Duration
		fails         bool
	}{
		{"one family", Families{IPv4: true}, four, nil, time.Second, false},
		{"two families", Families{IPv4: true, IPv6: true}, four, six, 2 * time.Second, false},
		{"more than expected", Families{IPv6: true}, four, six, 2 * time.Second, false},
		{"the second does not come", Families{IPv4: true, IPv6: true}, six, nil, time.Second + secondFamily, false},
		{"nothing comes", Families{IPv4: true}, nil, nil, pastaDeadline, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var made sync.WaitGroup
				defer made.Wait()
				made.Go(func() {
					time.Sleep(time.Second - pastaPause/2)
					tt.first.write(t, dir)
					time.Sleep(time.Second)
					tt.second.write(t, dir)
				})
				start := time.Now()
				err := awaitPasta(dir, tt.expected)
				if took := time.Since(start); took != tt.want || (err != nil) != tt.fails {
					t.Errorf("%v after %s, want %s", err, took, tt.want)
				}
			})
		})
	}
}
