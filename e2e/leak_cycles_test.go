package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// holds counts the resources of a daemon.
type holds struct {
	files, sockets int
	names          []string // what the open files are
}

func holding(t testing.TB, pid int) (h holds) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	entries, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, err := os.Readlink(dir + "fd/" + e.Name())
		if err != nil {
			continue // it was closed meanwhile
		}
		if strings.HasPrefix(filepath.Base(to), "stasis.db") {
			continue // the catalogue's connection pool, which grows up to its limit
		}
		h.names = append(h.names, to)
		if h.files++; strings.HasPrefix(to, "socket:") {
			h.sockets++
		}
	}
	return h
}

// atRest is how many goroutines a daemon without sessions may have: those of its server,
// database, janitor and Go itself, and of some idle connections.
const atRest = 40

// cycleUIDs is the first user ID of the Chromes in the test below.
const cycleUIDs = 260000

// Sessions, made, used and ended in every way, leave the daemon and the machine
// unchanged: twenty sessions in make test, fifty in make test-long.
func TestLeakCycles(t *testing.T) {
	// Only one Chrome is parked at a time. The user IDs belong to this test alone, so
	// that leftovers are known to be its own.
	d := daemon.Start(t, daemon.Options{Args: []string{"--parked", "1",
		"--uid-base", strconv.Itoa(cycleUIDs), "--uid-count", "200"}})
	site := apps.StartProbe(t)
	kept := finish(t, d, begin(t, d, obj{}).ID, toFiles+andDefault)
	modes := []string{throwAway, throwAway, toFiles, throwAway, toMemory}
	cycle := func(t *testing.T, i int) {
		body := obj{}
		switch i % 5 {
		case 1:
			body["restore_from_environment_id"] = kept.Snapshot.ID
		case 3:
			body["restore_default_environment_from_user_id"] = "default"
		case 4:
			body["start_url"] = site.URL + "/"
		}
		s := begin(t, d, body)
		if i%2 == 0 {
			w := dial(t, s.CDP)
			page, _ := w.page()
			w.open(page, site.URL+"/")
			if i%4 == 0 {
				w.close() // the other clients are connected when the session ends
			}
		}
		e := finish(t, d, s.ID, modes[i%5])
		if e.Snapshot != nil {
			d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/snapshots/"+e.Snapshot.ID, nil)
		}
	}
	// Two sessions at a time, each lane with every variant.
	lanes := func(name string, rounds int) {
		t.Run(name, func(t *testing.T) {
			for lane := range 2 {
				t.Run(strconv.Itoa(lane), func(t *testing.T) {
					t.Parallel()
					for i := range rounds {
						cycle(t, 5*lane+i)
					}
				})
			}
		})
	}
	lanes("before", 5) // first make everything that is made once
	nothingLeft(t, d)
	http.DefaultClient.CloseIdleConnections()
	before, stored := holding(t, d.PID()), len(files(t, filepath.Join(d.Dir, "snapshots")))
	rounds := 5
	if storetest.Long() {
		rounds = 20
	}
	lanes("after", rounds)
	nothingLeft(t, d)
	http.DefaultClient.CloseIdleConnections()
	var after holds
	defer func() {
		if t.Failed() {
			t.Logf("before %+v, after %+v", before, after)
		}
	}()
	daemon.Eventually(t, grace, "the daemon has no more open files and sockets than before", func() bool {
		after = holding(t, d.PID())
		return after.files <= before.files && after.sockets <= before.sockets
	})
	if now := len(files(t, filepath.Join(d.Dir, "snapshots"))); now != stored {
		t.Errorf("files in the store: %d, were %d", now, stored)
	}
	for _, dir := range []string{os.TempDir(), "/dev/shm"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && statUID(info) >= cycleUIDs && statUID(info) < cycleUIDs+200 {
				t.Errorf("%s remains in %s", e.Name(), dir)
			}
		}
	}
	// If each session left one goroutine, there would be more than this.
	n := d.Goroutines(t)
	t.Logf("%d goroutines", n)
	if n == 0 || n > atRest {
		t.Errorf("%d goroutines, want some and at most %d", n, atRest)
	}
}
