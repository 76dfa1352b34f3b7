package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
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
// unchanged. One lane has Chrome, one the shell, at the same time. make test has three
// sessions of each before and after, make test-long five before and twenty after.
func TestLeakCycles(t *testing.T) {
	t.Parallel()
	// Only one Chrome is parked at a time. The user IDs belong to this test alone, so
	// that leftovers are known to be its own.
	d := daemon.Start(t, daemon.Options{Args: []string{"--parked", "1",
		"--uid-base", strconv.Itoa(cycleUIDs), "--uid-count", "200"}})
	site := apps.StartProbe(t)
	engines := []string{browser.EngineChrome, browser.EngineShell}
	kept := map[string]string{} // snapshots, by engine and user
	for _, engine := range engines {
		kept[engine] = finish(t, d, begin(t, d, obj{"user_id": engine, "engine": engine}).ID, toFiles+andDefault).Snapshot.ID
	}
	// A cycle is one session: what it begins with, whether a client connects and closes or
	// stays connected until the end, and how the session ends.
	type cycle struct {
		from    string
		client  string
		endMode string
	}
	cycles := []cycle{{"start_url", "", throwAway}, {"environment", "stays", toFiles}, {"default", "closes", toMemory}}
	after := 3
	if storetest.Long() {
		cycles = []cycle{{"", "closes", throwAway}, {"environment", "", throwAway}, {"", "stays", toFiles}, {"default", "", throwAway}, {"start_url", "", toMemory}}
		after = 20
	}
	run := func(t *testing.T, engine string, c cycle) {
		body := obj{"engine": engine, "user_id": engine}
		switch c.from {
		case "environment":
			body["restore_from_environment_id"] = kept[engine]
		case "default":
			body["restore_default_environment_from_user_id"] = engine
		case "start_url":
			body["start_url"] = site.URL + "/"
		}
		s := begin(t, d, body)
		if c.client != "" {
			w := dial(t, s.CDP)
			page, _ := w.page()
			w.open(page, site.URL+"/")
			if c.client == "closes" {
				w.close()
			}
		}
		e := finish(t, d, s.ID, c.endMode)
		if e.Snapshot != nil {
			d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/snapshots/"+e.Snapshot.ID, nil)
		}
	}
	lanes := func(name string, rounds int) {
		t.Run(name, func(t *testing.T) {
			for _, engine := range engines {
				t.Run(engine, func(t *testing.T) {
					t.Parallel()
					for i := range rounds {
						run(t, engine, cycles[i%len(cycles)])
					}
				})
			}
		})
	}
	lanes("before", len(cycles)) // first make everything that is made once
	nothingLeft(t, d)
	http.DefaultClient.CloseIdleConnections()
	before, stored := holding(t, d.PID()), len(files(t, filepath.Join(d.Dir, "snapshots")))
	lanes("after", after)
	nothingLeft(t, d)
	http.DefaultClient.CloseIdleConnections()
	var now holds
	defer func() {
		if t.Failed() {
			t.Logf("before %+v, after %+v", before, now)
		}
	}()
	daemon.Eventually(t, grace, "the daemon has no more open files and sockets than before", func() bool {
		now = holding(t, d.PID())
		return now.files <= before.files && now.sockets <= before.sockets
	})
	if n := len(files(t, filepath.Join(d.Dir, "snapshots"))); n != stored {
		t.Errorf("files in the store: %d, were %d", n, stored)
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
