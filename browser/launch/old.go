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

// reserve keeps the users of the run directories that a dead daemon left from
// being handed out: a Chrome of one could read what another session left.
func (l *Launcher) reserve() {
	if l.uids == nil {
		return
	}
	entries, _ := os.ReadDir(l.root) // Sweep reads it again and reports
	for _, entry := range entries {
		l.uids.hold(ownerOf(entry))
	}
}

// OldDir returns the run directory of that name that a dead daemon left, as
// [Launcher.Sweep] listed it. No Chrome can be started on it; it is there to
// be read and removed. Its user is handed out again once it is removed.
func (l *Launcher) OldDir(name string) (*Dir, error) {
	const op = "launch.old_dir"
	if !filepath.IsLocal(name) || name != filepath.Base(name) {
		return nil, fault.New(fault.Internal, op, "a run directory's name must be one path element")
	}
	path := filepath.Join(l.root, name)
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return nil, fault.Wrap(err, fault.Internal, op, "the run directory is not there")
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
