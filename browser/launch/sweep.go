package launch

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// userDataDirFlag is on the command line of Chrome's main process, and of nearly every
// other process of its tree, followed by the path.
const userDataDirFlag = "--user-data-dir="

// scratchPrefix is the prefix of temporary run directories.
const scratchPrefix = ".scratch-"

// sweepPause is the time between two checks for killed processes that are not children of
// this process.
const sweepPause = 5 * time.Millisecond

// Sweep ends every process that the Chromes of a dead daemon left under the root. It
// returns the names of the remaining run directories, sorted. Call it before the first
// Start: it does not distinguish this daemon's Chromes from those of a dead daemon.
// Errors: Timeout if ctx ends before the processes have, Internal for errors of the file
// system.
func (l *Launcher) Sweep(ctx context.Context) ([]string, error) {
	const op = "launch.sweep"
	if err := killMatching(ctx, l.leftover()); err != nil {
		return nil, fault.Wrap(err, fault.Timeout, op, "")
	}
	l.groups.Sweep()
	entries, err := os.ReadDir(l.root)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, op, "")
	}
	var left []string
	for _, entry := range entries {
		owner := ownerOf(entry)
		switch {
		case !entry.IsDir():
		case strings.HasPrefix(entry.Name(), scratchPrefix):
			if err := os.RemoveAll(filepath.Join(l.root, entry.Name())); err != nil {
				return nil, fault.Wrap(err, fault.Internal, op, "")
			}
			if l.uids != nil {
				l.uids.give(owner)
			}
		default:
			left = append(left, entry.Name())
		}
	}
	return left, nil
}

// leftover returns a function that reports whether a process belongs to a dead daemon.
// Such a process has a user data directory under the root on its command line. Not all
// processes have that flag, so a process also matches if its user is in the range and
// owns a run directory under the root. A process with a user data directory elsewhere
// belongs to another daemon with the same range.
func (l *Launcher) leftover() func(pid int) bool {
	named := userDataDirFlag + l.root + string(filepath.Separator)
	owners := map[int]bool{}
	if l.uids != nil {
		entries, _ := os.ReadDir(l.root) // Sweep reads it again and reports the error
		for _, entry := range entries {
			if uid := ownerOf(entry); l.uids.contains(uid) {
				owners[uid] = true
			}
		}
	}
	return func(pid int) bool {
		line := commandLine(pid)
		if bytes.Contains(line, []byte(userDataDirFlag)) {
			return bytes.Contains(line, []byte(named))
		}
		return len(owners) > 0 && owners[uidOf(pid)]
	}
}

// runsHere reports whether a process belongs to the Chrome of this directory.
func (d *Dir) runsHere(pid int) bool {
	if d.UID != os.Geteuid() && uidOf(pid) == d.UID {
		return true
	}
	line := append(commandLine(pid), 0)
	return bytes.Contains(line, []byte(userDataDirFlag+d.Profile()+"\x00")) ||
		bytes.Contains(line, []byte(userDataDirFlag+d.Profile()+" "))
}

// killMatching sends SIGKILL to every process that matches, until none remains or ctx
// ends. Zombies do not count, as they only wait for their parent.
func killMatching(ctx context.Context, match func(pid int) bool) error {
	for {
		found := false
		for _, p := range processes() {
			if p.pid != os.Getpid() && !p.dead() && match(p.pid) {
				found = true
				// Fails only when the process has just ended.
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
			}
		}
		if !found {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(sweepPause):
		}
	}
}

// ownerOf returns the uid that a directory entry belongs to, or -1.
func ownerOf(entry fs.DirEntry) int {
	info, err := entry.Info()
	if err != nil {
		return -1
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
