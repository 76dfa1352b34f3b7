package files

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// The files of a session that moves to another node are sent as a stream: a line that says how
// many there are, and for each a line that describes it and then its bytes. Lines are JSON. The
// receiver trusts neither the lines nor that the stream is whole.

// sentAll is the first line of a stream.
type sentAll struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"` // of all
}

// sentFile is the line before a file.
type sentFile struct {
	Name       string    `json:"name"`
	GUID       string    `json:"guid,omitempty"` // of a download
	Size       int64     `json:"size"`
	SHA256     string    `json:"sha256"`
	ModifiedAt time.Time `json:"modified_at"`
}

const (
	maxLine = 4 << 10 // bytes of a line
	maxName = 255     // bytes of a file's name
	// perFile is how many bytes each file counts at least against a limit of the disk.
	perFile = 4096
)

// movable reports whether a file can be sent. Names that are not UTF-8 cannot be read by any call.
func movable(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxName && utf8.ValidString(name) &&
		!strings.ContainsAny(name, "/\x00") && !strings.HasPrefix(name, partPrefix)
}

// Count returns how many files of a run directory [Send] sends.
func Count(dir *browser.Dir) (int, error) {
	in, err := openFolder(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }() // only a handle
	list, err := in.movable()
	return len(list), err
}

// movable lists the files that can be sent.
func (f folder) movable() ([]Info, error) {
	list, err := f.list()
	return slices.DeleteFunc(list, func(i Info) bool { return !movable(i.Name) }), err
}

// Send writes the files of a run directory to w, for [Receive]. No Chrome may use the directory.
func Send(ctx context.Context, dir *browser.Dir, w io.Writer) error {
	in, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only a handle
	list, err := in.movable()
	if err != nil {
		return err
	}
	all := sentAll{Files: len(list)}
	for _, f := range list {
		all.Bytes += f.Size
	}
	if err := writeLine(w, all); err != nil {
		return err
	}
	for _, f := range list {
		if err := in.send(ctx, f, w); err != nil {
			return err
		}
	}
	return nil
}

// send writes a file. It is read twice: its hash comes first, so that the receiver also finds what
// changed in between.
func (f folder) send(ctx context.Context, i Info, w io.Writer) error {
	file, info, err := f.openFile(i.Name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	if info.Size() != i.Size {
		return sendFailed(errChanged)
	}
	from, sum := access.Reader(ctx, file), sha256.New()
	if _, err := io.CopyN(sum, from, info.Size()); err != nil {
		return sendFailed(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return sendFailed(err)
	}
	line := sentFile{Name: i.Name, GUID: i.GUID, Size: info.Size(), SHA256: hex.EncodeToString(sum.Sum(nil)), ModifiedAt: info.ModTime().UTC()}
	if err := writeLine(w, line); err != nil {
		return err
	}
	_, err = io.CopyN(w, from, info.Size())
	return sendFailed(err)
}

// errChanged says that a file is not as it was listed.
var errChanged = errors.New("a file has changed meanwhile")

func writeLine(w io.Writer, line any) error {
	text, err := json.Marshal(line)
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return sendFailed(err)
}

func sendFailed(err error) error {
	return fault.Wrap(err, fault.StoreFailed, "session.send_files", "the session's files could not be sent")
}

// Receive stores the files that [Send] has written to r in a run directory, under the same names
// and GUIDs. most limits the bytes of all; 0: there is no limit. A file that has one of these names
// already, because a page has just downloaded it, gets a number. After an error some files may be
// stored.
// Errors of r that have a code keep it.
func Receive(ctx context.Context, dir *browser.Dir, r io.Reader, most int64) error {
	in, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only a handle
	from := bufio.NewReaderSize(r, maxLine)
	var all sentAll
	if err := readLine(from, &all); err != nil {
		return err
	}
	if all.Files < 0 || all.Bytes < 0 {
		return malformed("its first line is not valid")
	}
	if most > 0 && (all.Bytes > most || int64(all.Files) > most/perFile) {
		return fault.New(fault.StoreFull, "session.receive_files", "the session has %d files of %d bytes, and may use %d bytes of the disk here", all.Files, all.Bytes, most)
	}
	left := all.Bytes
	for range all.Files {
		var f sentFile
		if err := readLine(from, &f); err != nil {
			return err
		}
		if left -= f.Size; !movable(f.Name) || f.Size < 0 || left < 0 {
			return malformed("it has a file that is not valid")
		}
		if err := in.receive(ctx, f, from); err != nil {
			return putFailed(err)
		}
	}
	if _, err := from.ReadByte(); !errors.Is(err, io.EOF) || left != 0 {
		return malformed("it is not as long as its first line says")
	}
	return nil
}

// receive stores a file.
func (f folder) receive(ctx context.Context, s sentFile, r io.Reader) error {
	sum := sha256.New()
	content := &exactly{r: io.TeeReader(r, sum), left: s.Size}
	return f.store(ctx, content, func(part string) error {
		if hex.EncodeToString(sum.Sum(nil)) != s.SHA256 {
			return malformed("a file has another SHA-256 than it should")
		}
		if err := f.Chtimes(part, s.ModifiedAt, s.ModifiedAt); err != nil {
			return err
		}
		link := func() error { return f.Link(part, s.Name) }
		err := link()
		if errors.Is(err, fs.ErrExist) {
			if err = f.downloads.Renumber(s.Name); err == nil {
				err = link()
			}
		}
		if err == nil && s.GUID != "" {
			err = f.downloads.Adopt(s.GUID, s.Name)
		}
		if err != nil {
			return err
		}
		return f.Remove(part)
	})
}

// exactly reads a number of bytes. An earlier end of r is an error.
type exactly struct {
	r    io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.left)])
	if e.left -= int64(n); e.left > 0 && errors.Is(err, io.EOF) {
		err = malformed("it ends too early")
	}
	return n, err
}

// readLine reads a line. An error of the reader that has a code keeps it.
func readLine(r *bufio.Reader, line any) error {
	text, err := r.ReadSlice('\n')
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return err
	case err != nil:
		return malformed("it ends too early, or a line is too long")
	case json.Unmarshal(text, line) != nil:
		return malformed("a line is not JSON")
	}
	return nil
}

func malformed(why string) error {
	return fault.New(fault.StoreFailed, "session.receive_files", "the session's files did not arrive whole: %s", why)
}
