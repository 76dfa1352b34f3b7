package launch

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// blockSize is the unit of st_blocks (stat(2)), in bytes.
const blockSize = 512

// Used returns how many bytes of the disk the files in the directory take. Files that are
// removed meanwhile are skipped. It looks at each file.
func (d *Dir) Used() (bytes int64) {
	_ = filepath.WalkDir(d.Path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += stat.Blocks * blockSize
			}
		}
		return nil
	})
	return bytes
}

// Free returns how many bytes ordinary users may still write to the directory's file system.
func (d *Dir) Free() (bytes int64, err error) {
	var at syscall.Statfs_t
	if err := syscall.Statfs(d.Path, &at); err != nil {
		return 0, err
	}
	return int64(at.Bavail) * at.Frsize, nil //nolint:gosec // a disk has less
}
