//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stasisd/stasis/browser"
)

func TestSessionsInMemory(t *testing.T) {
	for bytes, want := range map[int64]int{
		0:                                     1,
		reservedMemory:                        1,
		reservedMemory + 2*sessionMemory - 1:  1,
		reservedMemory + 2*sessionMemory:      2,
		reservedMemory + 10*sessionMemory + 1: 10,
	} {
		if got := sessionsIn(bytes); got != want {
			t.Errorf("sessionsIn(%d) = %d, want %d", bytes, got, want)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	for text, want := range map[string]int64{"none": 0, "1": 1, "1073741824": 1 << 30} {
		var l memoryLimit
		if err := l.UnmarshalText([]byte(text)); err != nil || l.of(3) != want {
			t.Errorf("%q: %d, %v; want %d", text, l.of(3), err, want)
		}
	}
	if got := memoryLimit(0).of(3); got != 3*sessionMemory {
		t.Errorf("not given: %d", got)
	}
	for _, bad := range []string{"", "0", "-1", "1GB", "1.5", "99999999999999999999"} {
		if new(memoryLimit).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestSparesFor(t *testing.T) {
	for _, test := range []struct{ cores, sessions, want int }{{1, 1, 0}, {8, 1, 0}, {1, 2, 1}, {2, 9, 1}, {4, 9, 2}, {64, 99, 2}} {
		if got := sparesFor(test.cores, test.sessions); got != test.want {
			t.Errorf("sparesFor(%d, %d) = %d, want %d", test.cores, test.sessions, got, test.want)
		}
	}
}

func TestMemAvailable(t *testing.T) {
	got, err := memAvailable("MemTotal:       4000000 kB\nMemFree:         100 kB\nMemAvailable:    2048 kB\n")
	if err != nil || got != 2<<20 {
		t.Errorf("memAvailable = %d, %v; want %d", got, err, 2<<20)
	}
	for _, broken := range []string{"", "MemTotal: 1 kB\n", "MemAvailable: much kB\n"} {
		if _, err := memAvailable(broken); err == nil {
			t.Errorf("memAvailable(%q) returns no error", broken)
		}
	}
}

// The limits of a systemd unit, its slice and a container apply together.
func TestGroups(t *testing.T) {
	for cgroup, want := range map[string][]string{
		"0::/system.slice/stasis.service\n":            {"/fs", "/fs/system.slice/stasis.service", "/fs/system.slice"},
		"1:name=systemd:/init.scope\n0::/init.scope\n": {"/fs", "/fs/init.scope"},
		"0::/\n":               {"/fs"},
		"0::/../other\n":       {"/fs", "/fs/other"}, // it is outside the container's own groups
		"4:memory:/docker/1\n": {"/fs"},
		"":                     {"/fs"},
	} {
		if got := groups("/fs", cgroup); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", cgroup, got, want)
		}
	}
}

// In a container memory is short when its limit is nearly reached, whatever memory the
// machine has.
func TestLimitLeft(t *testing.T) {
	const stat = "anon 500\nfile 300\ninactive_file 100\nactive_file 200\n"
	for _, test := range []struct {
		max, current, stat string
		left               int64
		limited            bool
	}{
		{"1000\n", "800\n", stat, 300, true},
		{"1000\n", "50\n", stat, 1000, true}, // the two files are read at different times
		{"700\n", "900\n", stat, 0, true},
		{"1000\n", "", "", 1000, true},
		{"max\n", "800\n", stat, 0, false},
		{"", "", "", 0, false}, // the root
	} {
		group := t.TempDir()
		for name, body := range map[string]string{"memory.max": test.max, "memory.current": test.current, "memory.stat": test.stat} {
			if body == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(group, name), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if left, limited := limitLeft(group); left != test.left || limited != test.limited {
			t.Errorf("%+v: %d, %v", test, left, limited)
		}
	}
}

// The log names only limits that are in force.
func TestLimitsInForce(t *testing.T) {
	l := browser.Limits{Memory: 4, CPUs: 1.5, Processes: 3, Disk: 2}
	for _, tt := range []struct {
		name                     string
		groups, processors, root bool
		want                     string
	}{
		{"all", true, true, true, "[control_groups true session_disk 2 session_memory 4 session_cpus 1.5 session_processes 3]"},
		{"without the controller of processors", true, false, false, "[control_groups true session_disk 2 session_memory 4 session_processes 3]"},
		{"root without control groups", false, false, true, "[control_groups false session_disk 2 session_processes 3]"},
		{"an ordinary user", false, false, false, "[control_groups false session_disk 2]"},
	} {
		if got := fmt.Sprint(inForce(l, tt.groups, tt.processors, tt.root)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
