package main

import "testing"

func TestSessionsInMemory(t *testing.T) {
	for bytes, want := range map[int64]int{
		0:                                  1,
		spareMemory:                        1,
		spareMemory + 2*sessionMemory - 1:  1,
		spareMemory + 2*sessionMemory:      2,
		spareMemory + 10*sessionMemory + 1: 10,
	} {
		if got := sessionsIn(bytes); got != want {
			t.Errorf("sessionsIn(%d) = %d, want %d", bytes, got, want)
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
			t.Errorf("memAvailable(%q) gives no error", broken)
		}
	}
}
