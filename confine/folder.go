package confine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// FolderLimits bound what a child's folder holds. The kernel limits each file only, so the
// daemon looks at the folder while the child runs and once more when it has ended.
type FolderLimits struct {
	Bytes   int64 // of the disk
	Entries int   // files and folders
}

// watchInterval is the time between two looks at a folder.
const watchInterval = 500 * time.Millisecond

// watch kills a child as soon as its folder holds more than it may. When ctx ends, it looks
// once more and returns the error, or nil, on the channel.
func watch(ctx context.Context, t Task, pid int, kill func()) <-chan error {
	overfull := make(chan error, 1)
	if t.Folder == "" {
		overfull <- nil
		return overfull
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				overfull <- t.FolderLimits.check(t.Folder, 0)
				return
			case <-time.After(watchInterval):
			}
			if err := t.FolderLimits.check(t.Folder, unnamedBytes(pid, t.File)); err != nil {
				kill()
				overfull <- err
				return
			}
		}
	}()
	return overfull
}

// check returns an error if a folder holds more than the limits allow, or cannot be read
// completely: paths can be too long for that. bytes are used besides. Files that are removed
// meanwhile are skipped.
func (l FolderLimits) check(folder string, bytes int64) error {
	entries := 0
	return filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		var stat *syscall.Stat_t
		if err == nil {
			stat, err = statOf(entry.Info())
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		entries++
		if bytes += stat.Blocks * blockSize; bytes > l.Bytes || entries > l.Entries+1 { // the folder itself
			return fmt.Errorf("%d bytes, %d entries, and maybe more", bytes, entries)
		}
		return nil
	})
}

// blockSize is the unit of st_blocks (stat(2)), in bytes.
const blockSize = 512

// unnamedBytes returns how many bytes of the disk a process's open files take that have no
// name any more, without its input. It is 0 if the kernel does not let this process look.
func unnamedBytes(pid int, input *os.File) (bytes int64) {
	open := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, _ := os.ReadDir(open) // an ordinary user's daemon may not
	for _, entry := range entries {
		info, err := os.Stat(filepath.Join(open, entry.Name()))
		stat, err := statOf(info, err)
		if err == nil && stat.Nlink == 0 && info.Mode().IsRegular() && !isFile(input, info) {
			bytes += stat.Blocks * blockSize
		}
	}
	return bytes
}

func isFile(file *os.File, info fs.FileInfo) bool {
	if file == nil {
		return false
	}
	is, err := file.Stat()
	return err == nil && os.SameFile(is, info)
}

func statOf(info fs.FileInfo, err error) (*syscall.Stat_t, error) {
	if err != nil {
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, errors.New("the system says nothing of a file")
	}
	return stat, nil
}

// tooFull returns the error for a child whose folder holds too much.
func tooFull(t Task) error {
	return fault.New(t.Refused, "confine.run", "the file could not be read: the process that reads it wrote more than %d MiB or %d files and folders",
		t.FolderLimits.Bytes>>20, t.FolderLimits.Entries)
}
