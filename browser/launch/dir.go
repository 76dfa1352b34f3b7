package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/stasisd/stasis/browser/downloads"
	"github.com/stasisd/stasis/browser/netns"
	"github.com/stasisd/stasis/fault"
)

// Dir is the run directory of one Chrome. It belongs to that Chrome's user, and no other
// user can enter it.
type Dir struct {
	Path string // absolute
	UID  int    // the user that Chrome runs as: one of the range, or the daemon's own user

	release func() // returns the UID to the pool, once

	mu          sync.Mutex
	occupied    bool     // processes of a Chrome are left
	retained    int      // calls of Retain that were not released
	removeAsked bool     // by Remove, which the last of those processes or calls carries out
	whenRemoved []func() // see WhenRemoved

	network *netns.Network // nil: Chrome uses the daemon's
}

// Network returns what limits the addresses that the directory's Chrome connects to; nil:
// nothing of its own does.
func (d *Dir) Network() *netns.Network { return d.network }

// subdirs are the folders of a run directory.
var subdirs = []string{"profile", "home", "tmp", "files", "downloads", "waiting", "waiting/profile"}

// socketRoom is the length of what Chrome appends to TMPDIR for its singleton socket.
// maxSocketPath is the longest path of a Unix socket (unix(7)).
const (
	socketRoom    = len("/org.chromium.Chromium.XXXXXX/SingletonSocket")
	maxSocketPath = 107
)

// NewDir creates the run directory called name, one path element, below the launcher's
// root. It contains profile/, home/, tmp/, files/ and waiting/, each with mode 0700. A
// launcher that runs as root takes a UID from the range and makes it the owner;
// [Dir.Remove] returns the UID. Errors: Config if the path is too long for Chrome's
// socket, TooManySessions if no UID is free, Internal for errors of the file system,
// including fs.ErrExist.
func (l *Launcher) NewDir(name string) (*Dir, error) {
	const op = "launch.dir"
	if name != filepath.Base(name) || name == "." || name == ".." || name == "/" {
		return nil, fault.New(fault.Internal, op, "a run directory's name must be one path element")
	}
	d := &Dir{Path: filepath.Join(l.root, name), UID: os.Geteuid(), release: func() {}}
	if over := len(d.tmp()) + socketRoom - maxSocketPath; over > 0 {
		return nil, fault.New(fault.Config, op,
			"--data-dir: the path is %d bytes too long for Chrome's socket below it; give a shorter path", over)
	}
	if l.networks != nil {
		d.network = l.networks.NewNetwork()
	}
	if l.uids != nil {
		uid, err := l.uids.take()
		if err != nil {
			return nil, err
		}
		d.UID, d.release = uid, sync.OnceFunc(func() { l.uids.give(uid) })
	}
	if err := d.make(); err != nil {
		if !errors.Is(err, fs.ErrExist) {
			err = errors.Join(err, os.RemoveAll(d.Path))
		}
		d.release()
		return nil, fault.Wrap(err, fault.Internal, op, "the run directory cannot be created")
	}
	return d, nil
}

func (d *Dir) make() error {
	if err := os.Mkdir(d.Path, 0o700); err != nil {
		return err
	}
	for _, sub := range subdirs {
		if err := os.Mkdir(filepath.Join(d.Path, sub), 0o700); err != nil {
			return err
		}
	}
	return d.Chown()
}

// Profile returns the path of Chrome's user data directory.
func (d *Dir) Profile() string { return filepath.Join(d.Path, "profile") }

// Files returns the path of the folder for downloads and uploads.
func (d *Dir) Files() string { return filepath.Join(d.Path, "files") }

// Incoming returns the path of the folder that Chrome writes downloads to, by their GUIDs.
func (d *Dir) Incoming() string { return filepath.Join(d.Path, "downloads") }

// Downloads returns the downloads of the directory's Chrome.
func (d *Dir) Downloads() *downloads.Folder {
	return downloads.In(d.Path, filepath.Base(d.Incoming()), filepath.Base(d.Files()))
}

// Waiting returns the folder in the run directory where an environment is unpacked for a
// Chrome that already runs in this directory. It has its own user data directory, which
// no Chrome uses.
func (d *Dir) Waiting() *Dir {
	return &Dir{Path: filepath.Join(d.Path, "waiting"), UID: d.UID, release: func() {}}
}

func (d *Dir) tmp() string { return filepath.Join(d.Path, "tmp") }

// Chown makes Chrome's user the owner of everything below the directory. Call it after
// writing files there, while no Chrome runs on it. Symbolic links change owner themselves
// and are not followed. It does nothing unless the daemon runs as root.
func (d *Dir) Chown() error { return d.chown(d.Path) }

// ChownProfile is [Dir.Chown] for some folders of the user data directory that the running
// Chrome does not use yet. Folders that do not exist are skipped.
func (d *Dir) ChownProfile(names ...string) error {
	for _, name := range names {
		folder := filepath.Join(d.Profile(), name)
		if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.chown(folder); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) chown(root string) error {
	if d.UID == os.Geteuid() {
		return nil
	}
	return d.own(root)
}

// own makes the directory's user the owner of everything below root.
func (d *Dir) own(root string) error {
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, d.UID, d.UID)
	})
	return fault.Wrap(err, fault.Internal, "launch.chown", "")
}

// Remove deletes the directory and returns the UID to the pool. If processes of its Chrome
// are left because they take longer to end than [Process.Kill] waits, Remove returns nil and
// does it when they have ended. The same holds while the directory is retained. It can be
// repeated after an error; the UID stays in use until it succeeds, because files of that user
// still exist.
func (d *Dir) Remove() error {
	d.mu.Lock()
	d.removeAsked = true
	later := d.occupied || d.retained > 0
	d.mu.Unlock()
	if later {
		return nil
	}
	return d.remove()
}

func (d *Dir) remove() error {
	if err := os.RemoveAll(d.Path); err != nil {
		return fault.Wrap(err, fault.Internal, "launch.remove", "")
	}
	d.free()
	return nil
}

// free returns the UID to the pool.
func (d *Dir) free() {
	d.mu.Lock()
	all := d.whenRemoved
	d.whenRemoved = nil
	d.mu.Unlock()
	for _, f := range all {
		f()
	}
	d.release()
}

// WhenRemoved has f called when the directory is removed, before another Chrome can get its
// UID.
func (d *Dir) WhenRemoved(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.whenRemoved = append(d.whenRemoved, f)
}

// occupy notes that a Chrome was started on the directory, and vacate that none of its processes
// is left.
func (d *Dir) occupy() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.occupied = true
}

func (d *Dir) vacate() { d.end(func() { d.occupied = false }) }

// Retain keeps the directory until release is called. A Remove meanwhile is carried out then.
func (d *Dir) Retain() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retained++
	return sync.OnceFunc(func() { d.end(func() { d.retained-- }) })
}

// end ends a use of the directory, and removes the directory if it was the last one and Remove
// was called.
func (d *Dir) end(use func()) {
	d.mu.Lock()
	use()
	now := d.removeAsked && !d.occupied && d.retained == 0
	d.mu.Unlock()
	if now {
		_ = d.remove() // if it fails, the next start of the daemon removes the directory
	}
}

// Reclaim leaves only the user data directory, makes the daemon its owner and returns the
// UID to the pool. No Chrome may run on the directory, and none can be started on it
// afterwards. After an error, remove the directory.
func (d *Dir) Reclaim() error {
	for _, sub := range subdirs {
		if sub == "profile" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(d.Path, sub)); err != nil {
			return fault.Wrap(err, fault.Internal, "launch.reclaim", "")
		}
	}
	if d.UID != os.Geteuid() {
		own := &Dir{Path: d.Path, UID: os.Geteuid()}
		if err := own.own(own.Path); err != nil {
			return err
		}
		d.UID = own.UID
	}
	d.free()
	return nil
}

// mayEnter reports whether the permission bits allow the user to enter the folder.
func mayEnter(folder fs.FileInfo, uid int) bool {
	owner, ok := folder.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := folder.Mode().Perm()
	switch {
	case uid == 0:
		return true
	case int(owner.Uid) == uid:
		return mode&0o100 != 0
	case int(owner.Gid) == uid: // Chrome's group ID equals its user ID
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

// checkPassable returns a Config fault unless the user may enter every folder above dir.
// It checks only the permission bits.
func checkPassable(dir string, uid int) error {
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return fault.Wrap(err, fault.Config, "launch.passable", "the data directory cannot be read")
		}
		if !mayEnter(info, uid) {
			return &fault.Error{
				Code: fault.Config, Op: "launch.passable",
				Message: "Chrome's own user cannot enter the data directory: " +
					"run chmod o+x on it and on every folder above it, or choose another data directory (--data-dir)",
				Err: &fs.PathError{Op: "enter", Path: at, Err: fs.ErrPermission},
			}
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
