package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// The only permission bits that an archive stores and a restore sets.
const (
	fileMode = fs.FileMode(0o600)
	execMode = fs.FileMode(0o700)
	dirMode  = fs.ModeDir | 0o700
)

var errChanged = errors.New("the file changed while it was being packed")

// packEntry is an [Entry] whose file was examined. It is its own fs.FileInfo and reports
// only what an archive keeps, so that equal contents give equal bytes.
type packEntry struct {
	name   string
	disk   string // "" when data holds the bytes
	data   []byte
	size   int64
	mode   fs.FileMode
	mtime  time.Time // zero if there is no file
	inTail bool
}

func (e *packEntry) Name() string       { return path.Base(e.name) }
func (e *packEntry) Size() int64        { return e.size }
func (e *packEntry) Mode() fs.FileMode  { return e.mode }
func (e *packEntry) ModTime() time.Time { return e.mtime }
func (e *packEntry) IsDir() bool        { return e.mode.IsDir() }
func (e *packEntry) Sys() any           { return nil } // no uid, no gid, no names

// plan checks the entries and sorts them into the archive's order. These are save_failed:
// anything but a regular file or a folder, a name that is not clean and relative, a
// duplicate name, and a file below a file.
func plan(entries []Entry) ([]*packEntry, error) {
	list := make([]*packEntry, 0, len(entries))
	files := make(map[string]bool, len(entries)) // name → is a file
	for _, e := range entries {
		p, err := planOne(e)
		if err != nil {
			return nil, entryError(e.Name, err)
		}
		if _, twice := files[p.name]; twice {
			return nil, entryError(p.name, errors.New("the name occurs twice"))
		}
		files[p.name] = !p.IsDir()
		list = append(list, p)
	}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				return nil, entryError(name, errors.New("it is below a file"))
			}
		}
	}
	slices.SortFunc(list, func(a, b *packEntry) int { return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.name, b.name)) })
	return list, nil
}

// order is 0 for the entries of an archive's head, and 1 for those of its tail.
func order(e *packEntry) int {
	if e.inTail {
		return 1
	}
	return 0
}

func planOne(e Entry) (*packEntry, error) {
	if err := checkName(e.Name); err != nil {
		return nil, err
	}
	p := &packEntry{name: e.Name, disk: e.Path, data: e.Data, size: int64(len(e.Data)), mode: keptMode(e.Mode), inTail: e.InTail}
	if e.Path != "" {
		info, err := os.Lstat(e.Path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() && !info.IsDir() || info.IsDir() != p.IsDir() {
			return nil, errors.New("it is not, or no longer, the listed regular file or folder")
		}
		p.size, p.mtime = info.Size(), info.ModTime()
	}
	if p.IsDir() {
		p.size, p.inTail = 0, false
	}
	return p, nil
}

// keptMode reduces a mode to the bits that an archive keeps.
func keptMode(m fs.FileMode) fs.FileMode {
	switch {
	case m.IsDir():
		return dirMode
	case m&0o100 != 0:
		return execMode
	}
	return fileMode
}

// entryError wraps the reason why an entry cannot be packed. The name goes to the log only,
// because file names in a profile reveal which sites were visited.
func entryError(name string, err error) error {
	return fault.Wrap(&fs.PathError{Op: "pack", Path: name, Err: err},
		fault.SaveFailed, "snapshot.pack", "a file of the environment cannot be saved")
}

// open returns a reader of exactly the entry's bytes.
func (e *packEntry) open(ctx context.Context) (fs.File, error) {
	f := &packFile{ctx: ctx, entry: e, left: e.size}
	if e.disk == "" {
		f.src = io.NopCloser(bytes.NewReader(e.data))
		return f, nil
	}
	// If a link or a pipe has replaced the file, open must neither follow it nor block.
	file, err := os.OpenFile(e.disk, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, entryError(e.name, err)
	}
	f.src, f.file = file, file
	if err := f.same(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// packFile reads an entry and fails if the file is not, or is no longer, the listed one.
type packFile struct {
	ctx   context.Context // of the pack that reads the file, and no longer
	entry *packEntry
	src   io.ReadCloser
	file  *os.File // nil for in-memory content
	left  int64
}

func (f *packFile) Stat() (fs.FileInfo, error) { return f.entry, nil }
func (f *packFile) Close() error               { return f.src.Close() }

func (f *packFile) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.src.Read(p)
	f.left -= int64(n)
	switch {
	case f.left < 0, err == io.EOF && f.left > 0:
		return 0, entryError(f.entry.name, errChanged)
	case err == io.EOF:
		if changed := f.same(); changed != nil {
			return n, changed
		}
	case err != nil:
		return n, entryError(f.entry.name, err)
	}
	return n, err
}

func (f *packFile) same() error {
	if f.file == nil {
		return nil
	}
	info, err := f.file.Stat()
	if err != nil {
		return entryError(f.entry.name, err)
	}
	if !info.Mode().IsRegular() || info.Size() != f.entry.size || !info.ModTime().Equal(f.entry.mtime) {
		return entryError(f.entry.name, errChanged)
	}
	return nil
}
