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
	"strings"
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
	if err := empty(dir); err != nil {
		return Manifest{}, err
	}
	if m, err := verify(ctx, source); err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, diskFault(op, clearRestore(dir)))
		}
	}()
	at := filepath.Join(dir, Restoring)
	if err := errors.Join(os.Mkdir(at, dirMode), syncFolder(dir)); err != nil {
		return Manifest{}, diskFault(op, err)
	}
	m, err := read(ctx, source, func(name string, r io.Reader) error {
		to := filepath.Join(at, filepath.FromSlash(inDataDir(name)))
		if err := os.MkdirAll(filepath.Dir(to), dirMode); err != nil {
			return err
		}
		return writeFile(to, r)
	})
	if err != nil {
		return m, diskFault(op, err)
	}
	if err := own(dir); err != nil {
		return m, diskFault(op, err)
	}
	if err := errors.Join(syncFolders(at), moveUp(at, dir)); err != nil {
		return m, diskFault(op, err)
	}
	return m, diskFault(op, errors.Join(os.Remove(at), syncFolder(dir)))
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
// destroy, and clears what one that was cut short left.
func empty(dir string) error {
	const op = "backup.restore"
	if CutShort(dir) {
		if err := clearRestore(dir); err != nil {
			return diskFault(op, err)
		}
	}
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
func moveUp(at, dir string) error {
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(at, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return syncFolder(dir)
}

// own gives what was unpacked to the data directory's owner: root may restore for
// another user, whose daemon must be able to read it.
func own(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 || stat.Uid == 0 {
		return nil
	}
	return filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(at, "lost+found") {
			return err
		}
		return os.Lchown(at, int(stat.Uid), int(stat.Gid))
	})
}
