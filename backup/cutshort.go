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

// maxKey bounds, in bytes, what is read of a key to compare it: none is as long.
const maxKey = 1 << 20

// clearCutShort removes what a restore that was cut short put into a data directory.
// A key that is not the one of the backup m may be the only one that opens the
// archives, and may be the operator's: it is an error, and nothing is removed. Errors:
// config, and store_failed of the disk.
func clearCutShort(dir string, m Manifest) error {
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
			return fault.New(fault.Config, op, "--data-dir %s holds %s, which is not from this backup; move it away, and put it back after the restore", dir, name)
		}
	}
	return diskFault(op, clearRestore(dir))
}

// hashOf is the SHA-256, in hex, of a key in the data directory.
func hashOf(root *os.Root, name string) (string, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read from
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(file, maxKey)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
