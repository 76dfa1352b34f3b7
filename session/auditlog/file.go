package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// maxLine is more than a line can have, in bytes: ten texts, each of whose bytes is six in
// JSON, and two hashes.
const maxLine = 32 << 10

// File is a file that gets the log. Other programs may move or truncate it: it is opened
// for appending, and opened anew if its path leads to another file.
type File struct {
	path string
	file *os.File
	last profiles.AuditEntry
}

// OpenFile opens a file, or creates it, readable by its owner only. It removes the
// beginning of a line that a killed daemon left. A file that cannot be used is a config
// fault.
func OpenFile(path string) (*File, error) {
	const op = "auditlog.file"
	f := &File{path: path}
	if err := f.open(); err != nil {
		return nil, fault.Wrap(err, fault.Config, op, "the file of the audit log cannot be opened")
	}
	tail, size, err := f.tail()
	if err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Config, op, "the file of the audit log cannot be read"), f.file.Close())
	}
	whole := bytes.LastIndexByte(tail, '\n') + 1
	if torn := int64(len(tail) - whole); torn > 0 {
		if whole == 0 && size > torn {
			return nil, errors.Join(fault.New(fault.Config, op, "the file of the audit log ends with a line that is too long; give another file"), f.file.Close())
		}
		if err := f.file.Truncate(size - torn); err != nil {
			return nil, errors.Join(fault.Wrap(err, fault.Config, op, "the last line of the audit log's file is not complete and cannot be removed"), f.file.Close())
		}
	}
	if whole > 0 {
		line := tail[:whole-1]
		line = line[bytes.LastIndexByte(line, '\n')+1:]
		if err := json.Unmarshal(line, &f.last); err != nil || f.last.Hash != f.last.Sum() {
			return nil, errors.Join(fault.New(fault.Config, op, "the last line of the file %s is not an entry of an audit log; give another file", path), f.file.Close())
		}
	}
	return f, nil
}

func (f *File) open() (err error) {
	f.file, err = os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return errors.Join(err, f.file.Close())
	}
	return nil
}

// tail returns the last bytes of the file, and its size.
func (f *File) tail() ([]byte, int64, error) {
	info, err := f.file.Stat()
	if err != nil {
		return nil, 0, err
	}
	tail := make([]byte, min(info.Size(), 2*maxLine))
	_, err = f.file.ReadAt(tail, info.Size()-int64(len(tail)))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return tail, info.Size(), err
}

// Name implements [Sink].
func (f *File) Name() string { return f.path }

// Last implements [Sink].
func (f *File) Last() profiles.AuditEntry { return f.last }

// Write implements [Sink]. The lines are on disk when it returns.
func (f *File) Write(lines [][]byte) error {
	if err := f.follow(); err != nil {
		return err
	}
	before, err := f.file.Stat()
	if err != nil {
		return err
	}
	if _, err := f.file.Write(bytes.Join(lines, nil)); err != nil {
		return errors.Join(err, f.file.Truncate(before.Size())) // of a full disk, for example
	}
	return f.file.Sync()
}

// follow opens the file anew if another program has moved or removed it.
func (f *File) follow() error {
	now, err := os.Stat(f.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err == nil {
		if was, err := f.file.Stat(); err == nil && os.SameFile(was, now) {
			return nil
		}
	}
	old := f.file
	if err := f.open(); err != nil {
		f.file = old
		return err
	}
	return old.Close()
}

// Close implements [Sink].
func (f *File) Close() error { return f.file.Close() }
