package snapshot

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// unpacker writes entries below one folder. It remembers what it created so that it can
// remove everything again.
type unpacker struct {
	opts  UnpackOptions
	root  *os.Root
	fresh string              // the folder's path, if the unpacker made it
	seen  map[string]bool     // the archive's names so far → is a file
	dirs  map[string]struct{} // folders known to be folders
	// headDirs are the folders of the head, while the tail is unpacked to another place.
	headDirs map[string]struct{}
	made     []string // files and folders created, in order
	last     folder   // the folder of the last file
	buffer   []byte   // for copying
	times    []dirTime
	names    listing // entries, and the folders that their names imply
	out      UnpackResult
	closed   bool
}

// dirTime is a folder's time. It is set after the last write to the folder.
type dirTime struct {
	name string
	at   time.Time
}

func newUnpacker(dst string, o UnpackOptions) (*unpacker, error) {
	u := &unpacker{
		opts: o, names: listing{limits: o.Limits}, seen: map[string]bool{}, headDirs: map[string]struct{}{},
		out: UnpackResult{Kept: map[string][]byte{}}, buffer: make([]byte, 64<<10),
	}
	return u, u.begin(dst)
}

// begin makes dst the folder that is written to.
func (u *unpacker) begin(dst string) error {
	u.reset()
	err := os.Mkdir(dst, dirMode.Perm())
	if err == nil {
		u.fresh = dst
	} else if !errors.Is(err, os.ErrExist) {
		return err
	}
	if info, err := os.Lstat(dst); err != nil || !info.IsDir() {
		return errors.Join(err, &fs.PathError{Op: "unpack", Path: dst, Err: errors.New("not a folder")})
	}
	if u.root, err = os.OpenRoot(dst); err == nil && u.fresh != "" {
		err = u.own(u.root, ".")
	}
	if err != nil {
		return errors.Join(err, u.undo())
	}
	return nil
}

// reset forgets the folder that was written to.
func (u *unpacker) reset() {
	u.fresh, u.root, u.closed = "", nil, false
	u.dirs, u.made, u.last, u.times = map[string]struct{}{".": {}}, nil, folder{}, nil
}

// headDone ends the unpacking of the archive's head, which the caller of Unpack uses from
// here on, and begins that of the tail. ok says whether it is the head that was saved.
func (u *unpacker) headDone(ok bool) error {
	if !ok {
		return irregular("the head of its archive does not hold what was saved")
	}
	if err := u.finish(); err != nil {
		return local(err)
	}
	out := u.out
	out.Refused = slices.Clone(u.out.Refused)
	for name := range u.dirs {
		u.headDirs[name] = struct{}{}
	}
	u.reset() // an error from here on leaves the head to the caller
	if err := u.opts.Head(out); err != nil {
		return err
	}
	u.out.Kept = map[string][]byte{} // the caller reads the other one
	var err error
	u.root, err = u.opts.Tail.OpenRoot(".")
	return local(err)
}

// entry processes one entry of the archive. Its errors are irregular for faults of the
// entry, and localError for faults of the disk.
func (u *unpacker) entry(h *tar.Header, body io.Reader) error {
	dir := h.Typeflag == tar.TypeDir
	if !dir && h.Typeflag != tar.TypeReg || h.Linkname != "" {
		return irregular("its archive holds something that is neither a file nor a folder")
	}
	for record := range h.PAXRecords {
		if strings.HasPrefix(record, "GNU.sparse.") {
			return irregular("its archive holds a sparse file")
		}
	}
	name := h.Name
	if dir {
		name = strings.TrimSuffix(name, "/")
	}
	if err := checkName(name); err != nil {
		return errUnclean
	}
	if _, twice := u.seen[name]; twice {
		return irregular("its archive holds a duplicate name")
	}
	u.seen[name] = !dir
	if err := u.names.add(name); err != nil {
		return err
	}
	keep := !dir && slices.Contains(u.opts.Keep, name)
	if !keep && u.opts.Accept != nil && !u.opts.Accept(name) {
		u.out.Refused = append(u.out.Refused, name)
		return nil
	}
	u.out.Entries++
	u.out.Bytes += h.Size
	if h.Size > u.opts.Limits.Bytes || u.out.Bytes > u.opts.Limits.Bytes {
		return irregular("its archive holds more bytes than allowed")
	}
	switch {
	case keep:
		return u.keep(name, h.Size, body)
	case dir:
		u.times = append(u.times, dirTime{name, h.ModTime})
		return u.folder(name, true)
	}
	return u.file(name, h, body)
}

func (u *unpacker) keep(name string, size int64, body io.Reader) error {
	if size > MaxKept {
		return irregular("its archive holds a state document that is too large")
	}
	if u.opts.BeforeKept != nil {
		if err := u.opts.BeforeKept(size); err != nil {
			return err
		}
	}
	var content bytes.Buffer // grows with the bytes that arrive, not with the claimed size
	_, err := io.Copy(&content, body)
	u.out.Kept[name] = content.Bytes()
	return err
}

func (u *unpacker) file(name string, h *tar.Header, body io.Reader) error {
	_, isDir := u.dirs[name]
	_, inHead := u.headDirs[name]
	if isDir || inHead {
		return irregular("its archive holds a file and a folder with the same name")
	}
	if err := u.folder(path.Dir(name), false); err != nil {
		return err
	}
	at, err := u.open(path.Dir(name))
	if err != nil {
		return local(err)
	}
	f, err := at.OpenFile(path.Base(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, keptMode(h.FileInfo().Mode()).Perm())
	if err != nil {
		return local(err)
	}
	u.made = append(u.made, name)
	_, err = io.CopyBuffer(localWriter{f}, body, u.buffer)
	if o := u.opts.Owner; err == nil && o != nil {
		err = local(f.Chown(o.UID, o.GID))
	}
	if closed := f.Close(); err == nil {
		err = local(closed)
	}
	if err == nil {
		err = setTime(at, path.Base(name), h.ModTime)
	}
	return err
}

func (u *unpacker) own(at *os.Root, name string) error {
	if u.opts.Owner == nil {
		return nil
	}
	return local(at.Lchown(name, u.opts.Owner.UID, u.opts.Owner.GID))
}

// setTime sets a time. A file that was packed from memory has time 0, which stays unset.
func setTime(root *os.Root, name string, at time.Time) error {
	if at.Unix() == 0 {
		return nil
	}
	return local(root.Chtimes(name, at, at))
}

// finish sets the folders' times and closes the root.
func (u *unpacker) finish() error {
	for _, d := range slices.Backward(u.times) {
		if err := setTime(u.root, d.name, d.at); err != nil {
			return err
		}
	}
	u.closed = true
	return u.close()
}

func (u *unpacker) close() error {
	var last error
	if u.last.root != nil {
		last = u.last.root.Close()
	}
	return errors.Join(last, u.root.Close())
}

// undo removes everything that the unpacker created: its own folder as a whole, or else
// the topmost files and folders.
func (u *unpacker) undo() error {
	var errs []error
	if u.fresh != "" {
		if u.root != nil && !u.closed {
			errs = append(errs, u.close())
		}
		return errors.Join(append(errs, os.RemoveAll(u.fresh))...)
	}
	if u.root != nil && !u.closed {
		// Removing whole folders avoids one step per element for long paths.
		ours := make(map[string]struct{}, len(u.made))
		for _, name := range u.made {
			if _, below := ours[path.Dir(name)]; !below {
				errs = append(errs, u.root.RemoveAll(name))
			}
			ours[name] = struct{}{}
		}
		errs = append(errs, u.close())
	}
	return errors.Join(errs...)
}
