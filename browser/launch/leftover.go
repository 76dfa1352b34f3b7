package launch

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// Name returns the directory's name below the launcher's root.
func (d *Dir) Name() string { return filepath.Base(d.Path) }

// reserve marks the UIDs of run directories that a dead daemon left as taken. Otherwise a
// new Chrome with such a UID could read what another session left.
func (l *Launcher) reserve() {
	if l.uids == nil {
		return
	}
	entries, _ := os.ReadDir(l.root) // Sweep reads it again and reports the error
	for _, entry := range entries {
		l.uids.reserve(ownerOf(entry))
	}
}

// LeftoverDir returns a run directory that a dead daemon left, by its name from
// [Launcher.Sweep]. It can be read and removed, but no Chrome can be started on it. Its
// UID becomes free once it is removed.
func (l *Launcher) LeftoverDir(name string) (*Dir, error) {
	const op = "launch.old_dir"
	if !filepath.IsLocal(name) || name != filepath.Base(name) {
		return nil, fault.New(fault.Internal, op, "a run directory's name must be one path element")
	}
	path := filepath.Join(l.root, name)
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return nil, fault.Wrap(err, fault.Internal, op, "the run directory does not exist")
	}
	uid := os.Geteuid()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		uid = int(stat.Uid)
	}
	d := &Dir{Path: path, UID: uid, release: func() {}}
	if l.uids != nil {
		d.release = sync.OnceFunc(func() { l.uids.give(uid) })
	}
	return d, nil
}
