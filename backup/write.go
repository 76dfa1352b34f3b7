package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/fault"
)

// FileSuffix ends the name of a backup that is one file.
const FileSuffix = ".tar.zst"

// The modes in a backup: only its owner has access.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// Writer is a backup that is being written. The caller fills the folder [Writer.Dir] and
// calls Commit, and calls Close in any case.
type Writer struct {
	target  string
	replace bool
	partial string   // contains Dir, and the packed file of a backup in one file
	lock    *os.File // the partial folder, locked
}

// Begin begins a backup. With replace, Commit replaces an existing backup of that name.
// Errors: config if the target cannot be a backup, or exists and replace is not set;
// store_full and store_failed of the disk.
func Begin(target string, replace bool) (*Writer, error) {
	if err := checkName(target); err != nil {
		return nil, err
	}
	target, err := filepath.Abs(target)
	if err != nil {
		return nil, fault.Wrap(err, fault.Config, "backup.begin", "the path of the backup cannot be resolved")
	}
	w := &Writer{target: target, replace: replace, partial: target + ".partial"}
	if err := w.checkTarget(); err != nil {
		return nil, err
	}
	if err := w.open(); err != nil {
		return nil, err
	}
	return w, nil
}

// IsFile reports whether a backup of that name is one file.
func IsFile(target string) bool { return strings.HasSuffix(target, FileSuffix) }

// archiveSuffixes end the names of other kinds of archives.
var archiveSuffixes = []string{".tar", ".tgz", ".gz", ".zst", ".tzst", ".bz2", ".tbz2", ".xz", ".txz", ".zip", ".7z", ".age"}

// checkName refuses the name of another kind of archive. A folder hardly ever has such a
// name; the caller probably wants one file.
func checkName(target string) error {
	name := strings.ToLower(target)
	if IsFile(target) || !slices.ContainsFunc(archiveSuffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) }) {
		return nil
	}
	return fault.New(fault.Config, "backup.begin",
		"%s: the name of a backup in one file must end with %s; for a folder of this name, add a slash at the end", target, FileSuffix)
}

// checkTarget refuses a target that the backup must not replace.
func (w *Writer) checkTarget() error {
	const op = "backup.begin"
	if parent, err := os.Stat(filepath.Dir(w.target)); errors.Is(err, fs.ErrNotExist) || err == nil && !parent.IsDir() {
		return fault.New(fault.Config, op, "%s: the folder %s does not exist; create it, or give another name", w.target, filepath.Dir(w.target))
	}
	info, err := os.Lstat(w.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return diskFault(op, err)
	case !w.replace:
		return fault.New(fault.Config, op, "%s exists already; give another name, or --replace to overwrite it", w.target)
	case IsFile(w.target) && info.Mode().IsRegular():
		return nil
	}
	if _, err := os.Lstat(filepath.Join(w.target, ManifestFile)); IsFile(w.target) || !info.IsDir() || err != nil {
		return fault.New(fault.Config, op, "%s is not a backup, so --replace does not replace it", w.target)
	}
	return nil
}

// open makes and locks the partial folder. It removes one that a killed backup left, or
// that another user made, who could change its content.
func (w *Writer) open() error {
	const op = "backup.begin"
	for range 2 {
		if err := os.Mkdir(w.partial, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return diskFault(op, err)
		}
		dir, err := os.OpenFile(w.partial, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return diskFault(op, err)
		}
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return errors.Join(fault.Wrap(err, fault.Config, op, "another backup is being written to "+w.partial), dir.Close())
		}
		info, err := dir.Stat()
		if err != nil {
			return errors.Join(diskFault(op, err), dir.Close())
		}
		entries, err := os.ReadDir(w.partial)
		if err == nil && len(entries) == 0 && private(info) {
			w.lock = dir
			err := os.Mkdir(w.Dir(), dirMode)
			if err != nil {
				return errors.Join(diskFault(op, err), w.Close())
			}
			return nil
		}
		if err := errors.Join(err, os.RemoveAll(w.partial), dir.Close()); err != nil {
			return diskFault(op, err)
		}
	}
	return fault.New(fault.StoreFailed, op, "another process is writing to %s", w.partial)
}

// Dir returns the folder that the caller fills.
func (w *Writer) Dir() string { return filepath.Join(w.partial, "content") }

// Commit hashes the files in the folder, writes the manifest and gives the backup its name.
// The caller has filled in the manifest except for its list of files.
func (w *Writer) Commit(ctx context.Context, m Manifest) (Manifest, error) {
	const op = "backup.commit"
	m.Format, m.FormatVersion = Format, FormatVersion
	var err error
	if m.Files, err = list(ctx, w.Dir()); err != nil {
		return m, diskFault(op, err)
	}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, fault.Wrap(err, fault.Internal, op, "")
	}
	content, err := os.OpenRoot(w.Dir())
	if err != nil {
		return m, diskFault(op, err)
	}
	defer func() { _ = content.Close() }() // only a handle
	if err := writeFile(content, ManifestFile, strings.NewReader(string(raw)+"\n")); err != nil {
		return m, diskFault(op, err)
	}
	if err := syncFolders(content); err != nil {
		return m, diskFault(op, err)
	}
	from := w.Dir()
	if IsFile(w.target) {
		from = filepath.Join(w.partial, "packed")
		if err := pack(ctx, from, w.Dir(), m); err != nil {
			return m, diskFault(op, err)
		}
		// The packed file is read back before it gets its name.
		if _, err := Verify(ctx, from); err != nil {
			return m, err
		}
	}
	return m, diskFault(op, w.publish(from))
}

// publish gives the finished backup its name.
func (w *Writer) publish(from string) error {
	if err := w.checkTarget(); err != nil {
		return err
	}
	_, err := os.Lstat(w.target)
	if err == nil && !IsFile(w.target) { // rename cannot replace a folder that is not empty: the two are exchanged in one step
		err = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, w.target, unix.RENAME_EXCHANGE)
	} else {
		err = os.Rename(from, w.target)
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(w.target))
}

// Close removes the partial folder. It is idempotent.
func (w *Writer) Close() error {
	if w.lock == nil {
		return nil
	}
	err := errors.Join(os.RemoveAll(w.partial), w.lock.Close())
	w.lock = nil
	return diskFault("backup.close", err)
}

// list hashes every file below a folder. Anything that is neither a file nor a folder is an
// error.
func list(ctx context.Context, root string) ([]File, error) {
	files := []File{}
	err := filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || !isBackupPath(filepath.ToSlash(name)) {
			return fault.New(fault.StoreFailed, "backup.list", "%s cannot be part of a backup", printable(name))
		}
		if err := os.Chmod(at, fileMode); err != nil {
			return err
		}
		size, sum, err := hashFile(ctx, at)
		files = append(files, File{Path: filepath.ToSlash(name), Size: size, SHA256: sum})
		return err
	})
	return files, err
}

// hashFile makes a file durable and hashes it.
func hashFile(ctx context.Context, name string) (size int64, sum string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil {
		return 0, "", err
	}
	h := sha256.New()
	size, err = io.Copy(h, withProgress(ctx, f))
	return size, hex.EncodeToString(h.Sum(nil)), err
}
