package launch

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

const (
	// blockSize is the unit of st_blocks (stat(2)), in bytes.
	blockSize = 512
	// perFile is how many bytes each file counts at least. An empty one has no blocks, but
	// takes one of the file system's inodes.
	perFile = 4096
)

// Used returns how many bytes of the disk the files in the directory take. Each file and
// folder, also an empty one, counts as at least 4 KiB. Files that are removed meanwhile are
// skipped. It looks at each file.
func (d *Dir) Used() (bytes int64) {
	_ = filepath.WalkDir(d.Path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += max(stat.Blocks*blockSize, perFile)
			}
		}
		return nil
	})
	return bytes
}

// Free returns how many bytes ordinary users may still write to the directory's file system,
// and how many bytes [Dir.Used] counts for as many empty files as it has inodes left. File
// systems that do not limit inodes may always return the same for files.
func (d *Dir) Free() (bytes, files int64, err error) {
	var at syscall.Statfs_t
	if err := syscall.Statfs(d.Path, &at); err != nil {
		return 0, 0, err
	}
	return int64(at.Bavail) * at.Frsize, int64(at.Ffree) * perFile, nil //nolint:gosec // a disk has less
}
