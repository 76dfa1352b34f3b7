package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// WorkFolder is the working folder of a restore in a data directory. If it exists, a restore
// was interrupted, and no daemon may start.
const WorkFolder = "restoring"

// allowedEntries lists what an empty data directory may contain: the caller's lock, and the
// folder of a new file system.
var allowedEntries = []string{"lock", "lost+found"}

// Restore restores a backup into a data directory that the caller has locked. The directory
// must be empty, except for what an interrupted restore left. Restore reads the whole
// backup before it writes anything. With keysFrom, a second backup, it restores the keys of
// that one and none of source's. After an error the directory is empty again. Errors are
// those of [Verify], config if the directory is not empty or keysFrom has no keys, and
// store_full and store_failed of its disk.
//
// The manifest is source's; its list of files is what was restored.
func Restore(ctx context.Context, source, keysFrom, dir string) (m Manifest, err error) {
	const op = "backup.restore"
	interrupted := RestoreInterrupted(dir)
	if !interrupted {
		if err := checkEmpty(dir); err != nil {
			return Manifest{}, err
		}
	}
	if m, err = verifyBoth(ctx, source, keysFrom); err != nil {
		return m, err
	}
	if interrupted {
		if err := clearInterrupted(dir, m); err != nil {
			return m, err
		}
		if err := checkEmpty(dir); err != nil {
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
	at, err := makeWorkFolder(root)
	if err != nil {
		return Manifest{}, diskFault(op, err)
	}
	defer func() { _ = at.Close() }()
	if err := unpackInto(ctx, at, source, keysFrom); err != nil {
		return m, diskFault(op, err)
	}
	if err := errors.Join(chownToOwner(root, at), syncFolders(at), moveIntoPlace(root, at)); err != nil {
		return m, diskFault(op, err)
	}
	return m, diskFault(op, errors.Join(root.Remove(WorkFolder), syncFolder(dir)))
}

// verifyBoth verifies both backups and returns source's manifest with the list of the files
// to restore.
func verifyBoth(ctx context.Context, source, keysFrom string) (Manifest, error) {
	m, err := Verify(ctx, source)
	if err != nil || keysFrom == "" {
		return m, err
	}
	keys, err := Verify(ctx, keysFrom)
	if err != nil {
		return m, err
	}
	if len(keys.KeyFiles()) == 0 {
		return m, fault.New(fault.Config, "backup.restore", "the backup %s has no keys; give one that was written with --keys", keysFrom)
	}
	m.Keys = keys.Keys
	m.Files = slices.DeleteFunc(m.Files, func(f File) bool { return inKeys(f.Path) })
	for _, f := range keys.Files {
		if inKeys(f.Path) {
			m.Files = append(m.Files, f)
		}
	}
	return m, nil
}

// unpackInto writes the files of source, with keysFrom its keys, to the working folder.
func unpackInto(ctx context.Context, at *os.Root, source, keysFrom string) error {
	keep := func(name string, r io.Reader) error {
		to := filepath.FromSlash(inDataDir(name))
		if err := at.MkdirAll(filepath.Dir(to), dirMode); err != nil {
			return err
		}
		return writeFile(at, to, r)
	}
	if keysFrom == "" {
		_, err := readFiles(ctx, source, keep)
		return err
	}
	only := func(keys bool) func(string, io.Reader) error {
		return func(name string, r io.Reader) error {
			if inKeys(name) == keys {
				return keep(name, r)
			}
			_, err := io.Copy(io.Discard, r)
			return err
		}
	}
	if _, err := readFiles(ctx, source, only(false)); err != nil {
		return err
	}
	_, err := readFiles(ctx, keysFrom, only(true))
	return err
}

// makeWorkFolder makes the working folder of a restore. The data directory may belong to another
// user, who can replace that folder at any time. So every file is written, moved and
// chowned below the folder's handle.
func makeWorkFolder(root *os.Root) (*os.Root, error) {
	if err := errors.Join(root.Mkdir(WorkFolder, dirMode), syncFolder(root.Name())); err != nil {
		return nil, err
	}
	at, err := root.OpenRoot(WorkFolder)
	if err != nil {
		return nil, err
	}
	info, err := at.Stat(".")
	if err == nil && !private(info) {
		err = errors.New("another process has replaced the folder " + WorkFolder)
	}
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	return at, nil
}

// inDataDir returns the path in a data directory of a file of a backup.
func inDataDir(name string) string {
	return strings.TrimPrefix(name, Keys+"/")
}

// RestoreInterrupted reports whether a restore into the data directory was interrupted.
func RestoreInterrupted(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, WorkFolder))
	return err == nil
}

// checkEmpty returns config if the data directory contains anything that a restore could
// destroy.
func checkEmpty(dir string) error {
	const op = "backup.restore"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return diskFault(op, err)
	}
	for _, e := range entries {
		if !slices.Contains(allowedEntries, e.Name()) {
			return fault.New(fault.Config, op, "--data-dir: %s is not empty: it contains %s; give an empty directory", dir, printable(e.Name()))
		}
	}
	return nil
}

// clearRestore removes what a restore put into a data directory, WorkFolder last.
func clearRestore(dir string) error {
	for _, name := range append([]string{Database, Extensions, Snapshots}, KeyFiles()...) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return errors.Join(syncFolder(dir), os.RemoveAll(filepath.Join(dir, WorkFolder)), syncFolder(dir))
}

// moveIntoPlace moves what was unpacked to its place.
func moveIntoPlace(root, at *os.Root) error {
	entries, err := fs.ReadDir(at.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := root.Rename(filepath.Join(WorkFolder, e.Name()), e.Name()); err != nil {
			return err
		}
	}
	return syncFolder(root.Name())
}

// chownToOwner makes the data directory's owner the owner of what was unpacked and of the lock. Root
// may restore for another user, whose daemon must be able to read the files.
func chownToOwner(root, at *os.Root) error {
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
		if err != nil || name == "." { // root stays the owner of this folder until all is done
			return err
		}
		return at.Lchown(filepath.FromSlash(name), uid, gid)
	})
	return errors.Join(err, chownLock(root, uid, gid))
}

// chownLock changes the owner of the lock. It refuses a lock that has a second hard link,
// which could be any file of root's.
func chownLock(root *os.Root, uid, gid int) error {
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
		return errors.New("the lock is not a regular file, or has other hard links")
	}
	return lock.Chown(uid, gid)
}
