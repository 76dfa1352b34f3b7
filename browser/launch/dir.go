package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// Dir is the run directory of one Chrome. It belongs to that Chrome's user
// and nobody else may enter it.
type Dir struct {
	Path string // absolute
	UID  int    // whom Chrome runs as: one of the range, or the daemon's own user

	release func() // gives the uid back, once
}

// subdirs are the folders of a run directory.
var subdirs = []string{"profile", "home", "tmp", "files", "waiting", "waiting/profile"}

// socketRoom is what Chrome puts behind TMPDIR to name its singleton socket,
// and maxSocketPath the longest name a unix socket can have (unix(7)).
const (
	socketRoom    = len("/org.chromium.Chromium.XXXXXX/SingletonSocket")
	maxSocketPath = 107
)

// NewDir makes the run directory called name, one path element, below the
// launcher's root: profile/, home/, tmp/, files/ and waiting/, each 0700. Run by root it
// takes a uid from the range and hands the directory to it; [Dir.Remove] gives
// it back. Errors: Config when the path is too long for Chrome's socket,
// TooManySessions when no uid is free, Internal for what the file system says,
// fs.ErrExist among it.
func (l *Launcher) NewDir(name string) (*Dir, error) {
	const op = "launch.dir"
	if name != filepath.Base(name) || name == "." || name == ".." || name == "/" {
		return nil, fault.New(fault.Internal, op, "a run directory's name must be one path element")
	}
	d := &Dir{Path: filepath.Join(l.root, name), UID: os.Geteuid(), release: func() {}}
	if over := len(d.tmp()) + socketRoom - maxSocketPath; over > 0 {
		return nil, fault.New(fault.Config, op,
			"the data directory's path is %d bytes too long for Chrome's socket; use a shorter one", over)
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
		return nil, fault.Wrap(err, fault.Internal, op, "the run directory cannot be made")
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
	return d.Own()
}

// Profile returns the path of Chrome's user data directory.
func (d *Dir) Profile() string { return filepath.Join(d.Path, "profile") }

// Files returns the path of the folder for downloads and uploads.
func (d *Dir) Files() string { return filepath.Join(d.Path, "files") }

// Waiting returns the place below it where an environment waits for a Chrome that
// runs in the directory already: one with a user data directory of its own, that
// no Chrome uses.
func (d *Dir) Waiting() *Dir {
	return &Dir{Path: filepath.Join(d.Path, "waiting"), UID: d.UID, release: func() {}}
}

func (d *Dir) tmp() string { return filepath.Join(d.Path, "tmp") }

// Own hands everything below the directory to Chrome's user; call it after
// laying files down there and while no Chrome runs on it. Links are handed
// over themselves and not followed. Run by another user than root it does
// nothing.
func (d *Dir) Own() error { return d.own(d.Path) }

// OwnProfile is [Dir.Own] for some folders of the user data directory alone,
// which the Chrome that runs does not use yet. One that is not there is none.
func (d *Dir) OwnProfile(names ...string) error {
	for _, name := range names {
		folder := filepath.Join(d.Profile(), name)
		if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.own(folder); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) own(root string) error {
	if d.UID == os.Geteuid() {
		return nil
	}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, d.UID, d.UID)
	})
	return fault.Wrap(err, fault.Internal, "launch.own", "")
}

// Remove deletes the directory with all that is in it and gives the uid back.
// No Chrome may run on it any more. When it fails it can be called again; the
// uid stays taken until it succeeds, since its files are still there.
func (d *Dir) Remove() error {
	if err := os.RemoveAll(d.Path); err != nil {
		return fault.Wrap(err, fault.Internal, "launch.remove", "")
	}
	d.release()
	return nil
}

// enters reports whether the permission bits let the user into the folder.
func enters(folder fs.FileInfo, uid int) bool {
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
	case int(owner.Gid) == uid: // a Chrome's group has its user's number
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

// checkPassable returns a Config fault unless the user may enter every folder
// above dir. It goes by the permission bits alone.
func checkPassable(dir string, uid int) error {
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return fault.Wrap(err, fault.Config, "launch.passable", "the data directory cannot be read")
		}
		if !enters(info, uid) {
			return &fault.Error{
				Code: fault.Config, Op: "launch.passable",
				Message: "Chrome's own user cannot enter the data directory: " +
					"run chmod o+x on it and on every folder above it, or choose one elsewhere (--data-dir)",
				Err: &fs.PathError{Op: "enter", Path: at, Err: fs.ErrPermission},
			}
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}
