package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// maxKey limits how many bytes of a key are read to compare it. Every key is shorter.
const maxKey = 1 << 20

// clearInterrupted removes what an interrupted restore put into a data directory. A key that
// is not in the backup m may be the operator's, and the only one that opens the archives.
// Then clearInterrupted removes nothing and returns config. Errors of the disk are
// store_failed.
func clearInterrupted(dir string, m Manifest) error {
	const op = "backup.restore"
	root, err := os.OpenRoot(dir)
	if err != nil {
		return diskFault(op, err)
	}
	defer func() { _ = root.Close() }() // only a handle
	for _, name := range KeyFiles() {
		is, err := hashOf(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return diskFault(op, err)
		}
		if !slices.ContainsFunc(m.Files, func(f File) bool { return f.Path == Keys+"/"+name && f.SHA256 == is }) {
			return fault.New(fault.Config, op, "--data-dir: %s contains %s, which is not from this backup; name its backup with --keys-from, or move it away, and move it back after the restore", dir, name)
		}
	}
	return diskFault(op, clearRestore(dir))
}

// hashOf returns the SHA-256, in hex, of a key in the data directory.
func hashOf(root *os.Root, name string) (string, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it is only read
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(file, maxKey)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
