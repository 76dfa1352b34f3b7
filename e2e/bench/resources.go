package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// Limits for what may remain after a soak: memory that Go has not returned yet, and the
// goroutines of a daemon that keeps spares.
const (
	rssGrowth        = 48 << 20 // bytes
	mostGoroutines   = 100
	resourceChecks   = 120 // checks, resourceInterval apart, until all is as before
	resourceInterval = 500 * time.Millisecond
)

// resources is the resources of a daemon without sessions.
type resources struct {
	chromes int // spares
	orphans int // processes that use its folders and have no Chrome of the daemon as their ancestor
	runs    int // folders of live sessions and spares
	stored  int // files of snapshots
	temp    int // files of its Chromes' users in shared folders
	files   int // open files and sockets, without those of the catalogue's pools, which vary
	rss     int64
	named   map[string]bool // folders of sessions, and open files by descriptor and target
}

// countResources closes idle connections of this process and counts what the daemon holds.
func (h *host) countResources() (now resources, err error) {
	http.DefaultClient.CloseIdleConnections()
	own := h.chromes()
	now.chromes = len(own.mains())
	now.orphans = orphans(h.Dir, own, h.PID())
	for _, folder := range []struct {
		count *int
		path  string
		deep  bool
	}{
		{&now.runs, filepath.Join(h.Dir, "run"), false},
		{&now.stored, filepath.Join(h.Dir, "snapshots", "archives"), true},
	} {
		if *folder.count, err = entries(folder.path, folder.deep); err != nil {
			return now, err
		}
	}
	now.named = names(filepath.Join(h.Dir, "run"))
	for name := range names(fmt.Sprintf("/proc/%d/fd", h.PID())) {
		if !strings.Contains(name, " "+filepath.Join(h.Dir, "stasis.db")) {
			now.named[name] = true
			now.files++
		}
	}
	now.temp = ofUsers(h.UIDs, os.TempDir(), "/dev/shm")
	now.rss, err = residentMemory(h.PID())
	return now, err
}

// asBefore waits until the daemon holds no more than before. It gives up after resourceChecks
// checks.
func (h *host) asBefore(ctx context.Context, before *resources) (now resources, err error) {
	for range resourceChecks {
		if err := settle(ctx); err != nil {
			return now, err
		}
		if now, err = h.countResources(); err != nil || before == nil || leaks(*before, now) == nil {
			return now, err
		}
		select {
		case <-time.After(resourceInterval):
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
	return now, nil
}

// names returns the names of the entries of folders. Those of links have the target.
func names(folders ...string) map[string]bool {
	all := map[string]bool{}
	for _, folder := range folders {
		list, _ := os.ReadDir(folder) // a folder that cannot be read has no entries
		for _, e := range list {
			name := e.Name()
			if target, err := os.Readlink(filepath.Join(folder, name)); err == nil {
				name += " " + target
			}
			all[name] = true
		}
	}
	return all
}

// leaks returns an error that names what has grown since before.
func leaks(before, after resources) error {
	var all []error
	for _, c := range []struct {
		what           string
		before, after  int
		atMost         int // how many more are allowed
		fewerIsNoFault bool
	}{
		{"Chromes", before.chromes, after.chromes, 0, false},
		{"orphan processes", before.orphans, after.orphans, 0, true},
		{"folders of sessions", before.runs, after.runs, 0, false},
		{"archives", before.stored, after.stored, 0, false},
		{"files in shared folders", before.temp, after.temp, 0, true},
		{"open files and sockets", before.files, after.files, 0, true},
		{"MB of memory", int(before.rss >> 20), int(after.rss >> 20), rssGrowth >> 20, true},
	} {
		if c.after > c.before+c.atMost || c.after < c.before && !c.fewerIsNoFault {
			all = append(all, fmt.Errorf("%s: %d, want %d as before", c.what, c.after, c.before))
		}
	}
	var left []string
	for name := range after.named {
		if !before.named[name] {
			left = append(left, name)
		}
	}
	if err := errors.Join(all...); err != nil && len(left) > 0 {
		slices.Sort(left)
		return fmt.Errorf("%w; new since before: %s", err, strings.Join(left, ", "))
	}
	return errors.Join(all...)
}

// orphans counts the processes that use a folder and are not in the daemon's tree.
func orphans(dir string, own tree, daemon int) (n int) {
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

// entries counts the entries of a folder, or with deep the files below it.
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

// ofUsers counts the files in folders that belong to a daemon's users.
func ofUsers(base int, dirs ...string) (n int) {
	for _, dir := range dirs {
		list, _ := os.ReadDir(dir) // a folder that cannot be read has no files of these users
		for _, e := range list {
			info, err := e.Info()
			if err != nil {
				continue // the file has been removed meanwhile
			}
			if stat, known := info.Sys().(*syscall.Stat_t); known && int(stat.Uid) >= base && int(stat.Uid) < base+rig.UIDCount {
				n++
			}
		}
	}
	return n
}
