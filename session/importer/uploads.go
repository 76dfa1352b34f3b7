package importer

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
)

// How many imports may run at once, for one user and for the daemon. Those that wait for
// their turn count too, because each keeps its upload on disk.
const (
	MaxUserUploads = 4
	MaxUploads     = 16
)

// uploads counts the running imports. Its methods are safe for concurrent use.
type uploads struct {
	mu    sync.Mutex
	all   int
	users map[string]int // by ID
}

func newUploads() *uploads { return &uploads{users: map[string]int{}} }

// take counts an import until leave is called; leave must be called once. If too many are
// running, the error is too_many_imports.
func (u *uploads) take(userID string) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.users[userID] >= MaxUserUploads:
		return nil, fault.New(fault.TooManyImports, "session.uploads", "too many imports: the user has %d running already; try again when one has ended", MaxUserUploads)
	case u.all >= MaxUploads:
		return nil, fault.New(fault.TooManyImports, "session.uploads", "too many imports: %d are running already; try again when one has ended", MaxUploads)
	}
	u.all++
	u.users[userID]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.all--
		if u.users[userID]--; u.users[userID] == 0 {
			delete(u.users, userID)
		}
	}, nil
}

// spool writes an upload to a file on the disk of the run directory. It returns the file,
// at its beginning. The file has no name, so closing it frees its space. While it writes,
// it checks that the store has space.
func (i *Importer) spool(ctx context.Context, dir *browser.Dir, body io.Reader) (*os.File, error) {
	file, err := i.tempFile(dir)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(i.writer(ctx, file), body); err != nil {
		return nil, errors.Join(unreadable(err), file.Close())
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Internal, "session.spool", ""), file.Close())
	}
	return file, nil
}

// tempFile makes a file without a name on the disk of the run directory. The caller closes
// it.
func (i *Importer) tempFile(dir *browser.Dir) (*os.File, error) {
	const op = "session.spool"
	file, err := os.CreateTemp(dir.Path, "upload")
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, op, "")
	}
	if err := os.Remove(file.Name()); err != nil { // closing the file then frees its space
		return nil, errors.Join(fault.Wrap(err, fault.Internal, op, ""), file.Close())
	}
	return file, nil
}

func (i *Importer) writer(ctx context.Context, file *os.File) io.Writer {
	return &diskWriter{file: file, checkSpace: func(need int64) error { return i.cfg.Archives.CheckSpace(ctx, need) }}
}

// spaceCheckInterval is the number of bytes of an upload after which the store's space is
// checked again, because a client need not announce the size.
const spaceCheckInterval = 16 << 20

// diskWriter writes an upload as long as the store has space for it too. Its errors
// distinguish a full disk from a body that was cut off.
type diskWriter struct {
	file             *os.File
	checkSpace       func(need int64) error
	written, checked int64
}

func (d *diskWriter) Write(p []byte) (int, error) {
	if d.written-d.checked >= spaceCheckInterval {
		if err := d.checkSpace(d.written); err != nil {
			return 0, err
		}
		d.checked = d.written
	}
	n, err := d.file.Write(p)
	d.written += int64(n)
	return n, fault.Wrap(err, fault.StoreFull, "session.spool", "the disk has no space for the upload")
}
