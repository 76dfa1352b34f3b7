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

// How many imports may be under way at once, of one user and of the daemon. Those that
// wait for their turn count too, because each keeps its upload on the disk.
const (
	MaxUserUploads = 4
	MaxUploads     = 16
)

// uploads count the imports that are under way. Its methods are safe for concurrent
// use.
type uploads struct {
	mu    sync.Mutex
	all   int
	users map[string]int // by ID
}

func newUploads() *uploads { return &uploads{users: map[string]int{}} }

// take counts an import until leave is called, once. With too many under way the error
// is too_many_imports.
func (u *uploads) take(userID string) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.users[userID] >= MaxUserUploads:
		return nil, fault.New(fault.TooManyImports, "session.uploads", "too many imports: %d of the key's user are on their way already", MaxUserUploads)
	case u.all >= MaxUploads:
		return nil, fault.New(fault.TooManyImports, "session.uploads", "too many imports: %d are on their way already", MaxUploads)
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

// spool writes an upload to a file on the disk of the run directory and returns the
// file, at its beginning. The file has no name: closing it frees its space. While it
// writes, it checks that the store has room.
func (i *Importer) spool(ctx context.Context, dir *browser.Dir, body io.Reader) (*os.File, error) {
	const op = "session.spool"
	file, err := os.CreateTemp(dir.Path, "upload")
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, op, "")
	}
	if err := os.Remove(file.Name()); err != nil { // its disk space goes with the handle
		return nil, errors.Join(fault.Wrap(err, fault.Internal, op, ""), file.Close())
	}
	_, err = io.Copy(&diskWriter{file: file, room: func(need int64) error { return i.cfg.Archives.CheckRoom(ctx, need) }}, body)
	if err != nil {
		return nil, errors.Join(unreadable(err), file.Close())
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Internal, op, ""), file.Close())
	}
	return file, nil
}

// roomEvery is after how many bytes of an upload the store's room is checked again: a
// client need not announce the size.
const roomEvery = 16 << 20

// diskWriter writes an upload as long as the store has room for it too. Its errors
// distinguish a full disk from a body that breaks off.
type diskWriter struct {
	file             *os.File
	room             func(need int64) error
	written, checked int64
}

func (d *diskWriter) Write(p []byte) (int, error) {
	if d.written-d.checked >= roomEvery {
		if err := d.room(d.written); err != nil {
			return 0, err
		}
		d.checked = d.written
	}
	n, err := d.file.Write(p)
	d.written += int64(n)
	return n, fault.Wrap(err, fault.StoreFull, "session.spool", "there is no room for the upload")
}
