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
)

// holds counts what a daemon holds of the machine.
type holds struct {
	files, sockets int
	names          []string // where the files lead to
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
			continue // closed meanwhile
		}
		if strings.HasPrefix(filepath.Base(to), "stasis.db") {
			continue // the catalogue's pool of connections: as many as there was need for, up to its bound
		}
		h.names = append(h.names, to)
		if h.files++; strings.HasPrefix(to, "socket:") {
			h.sockets++
		}
	}
	return h
}

// atRest is how many goroutines a daemon without sessions may have: those of
// its server, database, janitor and of Go itself, and some idle connections.
const atRest = 40

// cycleUIDs is where the users of the test below begin.
const cycleUIDs = 260000

// Fifty lives of sessions, in every way to make, use and end one, leave the
// daemon and the machine as they were.
func TestLeakFiftyCycles(t *testing.T) {
	// One Chrome stays parked at a time; the others make room. Their users are
	// this test's own, so that what they leave is known for theirs.
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
				w.close() // the others are there when the session ends
			}
		}
		e := finish(t, d, s.ID, modes[i%5])
		if e.Snapshot != nil {
			d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/snapshots/"+e.Snapshot.ID, nil)
		}
	}
	// Two lives at a time, each lane with every way.
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
	lanes("before", 5) // what is made once is made now
	nothingLeft(t, d)
	http.DefaultClient.CloseIdleConnections()
	before, stored := holding(t, d.PID()), len(files(t, filepath.Join(d.Dir, "snapshots")))
	lanes("after", 20)
	nothingLeft(t, d)
	http.DefaultClient.CloseIdleConnections()
	var after holds
	defer func() {
		if t.Failed() {
			t.Logf("before %+v, after %+v", before, after)
		}
	}()
	daemon.Eventually(t, grace, "the daemon holds no more files and sockets than before", func() bool {
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
				t.Errorf("%s is left in %s", e.Name(), dir)
			}
		}
	}
	// Fifty lives that left one each would be many more than a daemon at rest has.
	if n := d.Goroutines(t); n == 0 || n > atRest {
		t.Errorf("%d goroutines, want some and at most %d", n, atRest)
	}
}
