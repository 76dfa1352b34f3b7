package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// Restoring is the folder in a data directory that a restore works in. Where it
// is, a restore was cut short, and no daemon may start.
const Restoring = "restoring"

// mayBeThere is what an empty data directory may hold: the lock that the caller
// has, and what a new file system has.
var mayBeThere = []string{"lock", "lost+found"}

// Restore puts a backup into a data directory that the caller has locked, and that
// must be empty but for what a restore that was cut short left. The backup is
// read whole before anything is written; after an error the directory is empty
// again. Errors are those of [Verify], config where the directory is not empty, and
// store_full and store_failed of its disk.
func Restore(ctx context.Context, source, dir string) (_ Manifest, err error) {
	const op = "backup.restore"
	cutShort := CutShort(dir)
	if !cutShort {
		if err := empty(dir); err != nil {
			return Manifest{}, err
		}
	}
	if m, err := Verify(ctx, source); err != nil {
		return m, err
	} else if cutShort {
		if err := clearCutShort(dir, m); err != nil {
			return m, err
		}
		if err := empty(dir); err != nil {
			return m, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, diskFault(op, clearRestore(dir)))
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Manifest{}, diskFault(op, err)
	}
	defer func() { _ = root.Close() }() // only a handle
	at, err := begin(root)
	if err != nil {
		return Manifest{}, diskFault(op, err)
	}
	defer func() { _ = at.Close() }()
	m, err := readFiles(ctx, source, func(name string, r io.Reader) error {
		to := filepath.FromSlash(inDataDir(name))
		if err := at.MkdirAll(filepath.Dir(to), dirMode); err != nil {
			return err
		}
		return writeFile(at, to, r)
	})
	if err != nil {
		return m, diskFault(op, err)
	}
	if err := errors.Join(own(root, at), syncFolders(at), moveUp(root, at)); err != nil {
		return m, diskFault(op, err)
	}
	return m, diskFault(op, errors.Join(root.Remove(Restoring), syncFolder(dir)))
}

// begin makes the folder that a restore works in. The data directory may be another
// user's, who can put anything in that folder's place at any time: what is written,
// moved and given away is looked up below its handle.
func begin(root *os.Root) (*os.Root, error) {
	if err := errors.Join(root.Mkdir(Restoring, dirMode), syncFolder(root.Name())); err != nil {
		return nil, err
	}
	at, err := root.OpenRoot(Restoring)
	if err != nil {
		return nil, err
	}
	info, err := at.Stat(".")
	if err == nil && !private(info) {
		err = errors.New("somebody has put another folder in the place of " + Restoring)
	}
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	return at, nil
}

// inDataDir is where a file of a backup lies in a data directory.
func inDataDir(name string) string {
	if folder, key := path.Split(name); folder == Keys+"/" {
		return key
	}
	return name
}

// CutShort reports whether a restore into the data directory was cut short.
func CutShort(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, Restoring))
	return err == nil
}

// empty makes sure that the data directory holds nothing that a restore could
// destroy.
func empty(dir string) error {
	const op = "backup.restore"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return diskFault(op, err)
	}
	for _, e := range entries {
		if !slices.Contains(mayBeThere, e.Name()) {
			return fault.New(fault.Config, op, "--data-dir %s is not empty: it holds %s; a backup is restored into an empty one", dir, printable(e.Name()))
		}
	}
	return nil
}

// clearRestore removes what a restore put into a data directory, its mark last.
func clearRestore(dir string) error {
	for _, name := range append([]string{Database, Extensions, Snapshots}, KeyFiles()...) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return errors.Join(syncFolder(dir), os.RemoveAll(filepath.Join(dir, Restoring)), syncFolder(dir))
}

// moveUp moves what was unpacked to where it belongs.
func moveUp(root, at *os.Root) error {
	entries, err := fs.ReadDir(at.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := root.Rename(filepath.Join(Restoring, e.Name()), e.Name()); err != nil {
			return err
		}
	}
	return syncFolder(root.Name())
}

// own gives what was unpacked, and the lock, to the data directory's owner: root may
// restore for another user, whose daemon must be able to read it.
func own(root, at *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || stat.Uid == 0 {
		return nil
	}
	uid, gid := int(stat.Uid), int(stat.Gid)
	err = fs.WalkDir(at.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name == "." { // which keeps the owner out until all is done
			return err
		}
		return at.Lchown(filepath.FromSlash(name), uid, gid)
	})
	return errors.Join(err, ownLock(root, uid, gid))
}

// ownLock gives the lock away, unless it has another name too, which could be any
// file of root's.
func ownLock(root *os.Root, uid, gid int) error {
	lock, err := root.OpenFile("lock", os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // it is only read
	info, err := lock.Stat()
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.Mode().IsRegular() || stat.Nlink != 1 {
		return errors.New("the lock is no plain file, or has other names")
	}
	return lock.Chown(uid, gid)
}
