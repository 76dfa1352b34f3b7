package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// What a soak may leave: a heap that has not been given back, and goroutines
// of a daemon that keeps spares ready.
const (
	rssGrowth      = 48 << 20 // bytes
	mostGoroutines = 100
	heldLooks      = 120 // with heldEvery between them, until things are as before
	heldEvery      = 500 * time.Millisecond
)

// held is what a daemon without sessions has of the machine.
type held struct {
	chromes int // spares
	strays  int // processes on its folders that no Chrome of it has started
	runs    int // folders of live sessions and spares
	stored  int // files of snapshots
	temp    int // files in shared folders, of its Chromes' users
	files   int // open files and sockets
	rss     int64
}

// hold ends what idles on our side and looks.
func (h *host) hold() (now held, err error) {
	http.DefaultClient.CloseIdleConnections()
	own := h.chromes()
	now.chromes = len(own.mains())
	now.strays = strays(h.Dir, own, h.PID())
	for _, folder := range []struct {
		count *int
		path  string
		deep  bool
	}{
		{&now.runs, filepath.Join(h.Dir, "run"), false},
		{&now.stored, filepath.Join(h.Dir, "snapshots", "archives"), true},
		{&now.files, fmt.Sprintf("/proc/%d/fd", h.PID()), false},
	} {
		if *folder.count, err = entries(folder.path, folder.deep); err != nil {
			return now, err
		}
	}
	now.temp = ofUsers(h.UIDs, os.TempDir(), "/dev/shm")
	now.rss, err = residentMemory(h.PID())
	return now, err
}

// asBefore looks until the daemon holds no more than before, or for a while.
func (h *host) asBefore(ctx context.Context, before *held) (now held, err error) {
	for range heldLooks {
		if err := settle(ctx); err != nil {
			return now, err
		}
		if now, err = h.hold(); err != nil || before == nil || left(*before, now) == nil {
			return now, err
		}
		select {
		case <-time.After(heldEvery):
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
	return now, nil
}

// left tells what there is more of than before.
func left(before, after held) error {
	var all []error
	for _, c := range []struct {
		what           string
		before, after  int
		atMost         int // more than before
		fewerIsNoFault bool
	}{
		{"Chromes", before.chromes, after.chromes, 0, false},
		{"processes that nobody owns", before.strays, after.strays, 0, true},
		{"folders of sessions", before.runs, after.runs, 0, false},
		{"archives", before.stored, after.stored, 0, false},
		{"files in shared folders", before.temp, after.temp, 0, true},
		{"open files and sockets", before.files, after.files, 4, true}, // the catalogue's own pool
		{"MB of memory", int(before.rss >> 20), int(after.rss >> 20), rssGrowth >> 20, true},
	} {
		if c.after > c.before+c.atMost || c.after < c.before && !c.fewerIsNoFault {
			all = append(all, fmt.Errorf("%s: %d, were %d", c.what, c.after, c.before))
		}
	}
	return errors.Join(all...)
}

// strays counts the processes that work on a folder and are not in a tree.
func strays(dir string, own tree, daemon int) (n int) {
	known := map[int]bool{daemon: true}
	for _, p := range own {
		known[p.pid] = true
	}
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		raw, err := os.ReadFile(path)
		if err == nil && !known[pid] && strings.Contains(string(raw), dir) {
			n++
		}
	}
	return n
}

// entries counts what is in a folder, or the files below it.
func entries(dir string, deep bool) (n int, err error) {
	if !deep {
		list, err := os.ReadDir(dir)
		return len(list), err
	}
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	return n, err
}

// ofUsers counts what folders hold of a daemon's users.
func ofUsers(base int, dirs ...string) (n int) {
	for _, dir := range dirs {
		list, _ := os.ReadDir(dir) // what cannot be read holds nothing of theirs
		for _, e := range list {
			info, err := e.Info()
			if err != nil {
				continue // it has gone
			}
			if stat, known := info.Sys().(*syscall.Stat_t); known && int(stat.Uid) >= base && int(stat.Uid) < base+rig.UIDCount {
				n++
			}
		}
	}
	return n
}
