// Package gate lets a Chrome start before the profile that it is to run on is there.
//
// While it starts, Chrome reads little of a profile (measured with 156): some LevelDB
// databases, the files of a [Set], its settings, and its SQLite databases. Each of the first
// two kinds has a gate: a named pipe in place of the file that is read first (CURRENT in
// LevelDB), so only a reader of that file waits. The opens of SQLite databases are held in
// the kernel ([launch.Options.Hold]). The settings have no gate; see [profile.Carry]. Chrome
// opens all other files when a page first needs them, and by then they are there.
package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/fault"
)

// Set is what has a gate in an engine.
type Set struct {
	// databases are LevelDB databases, as folders of a profile.
	databases []string
	// files are read whole.
	files []string
	// later are those of them that no first page needs.
	later []string
	// kept are files and folders that the engine has in memory or open. Those of the
	// waiting profile stay where they are.
	kept []string
}

// Shell is what the headless shell reads at its start. It does not use SQLite before a
// page needs it.
func Shell() Set {
	return Set{databases: []string{"Local Storage/leveldb", "Service Worker/Database", "PersistentOriginTrials"}}
}

// Chrome is what full Chrome reads at its start, besides its SQLite databases.
func Chrome() Set {
	return Set{
		databases: []string{"Local Storage/leveldb", "Service Worker/Database", "PersistentOriginTrials", "Extension State",
			"Extension Rules", "Extension Scripts", "Sync Data/LevelDB", "Session Storage"},
		files: []string{"TransportSecurity", "Bookmarks", profile.SessionGate},
		later: []string{"Extension State", "Extension Rules", "Extension Scripts", "Sync Data/LevelDB", "Bookmarks"},
		kept:  profile.SettingsFiles(),
	}
}

const current = "CURRENT"

// maxCurrent bounds the file CURRENT, which contains one file name, in bytes.
const maxCurrent = 64

// Create creates the gates in an empty profile, whose folder it may create. No Chrome may be
// running on it.
func (s Set) Create(empty string) (err error) {
	for _, name := range s.Names() {
		pipe := filepath.Join(empty, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(pipe), 0o700)
		}
		if err == nil {
			err = unix.Mkfifo(pipe, 0o600)
		}
	}
	return fault.Wrap(err, fault.Internal, "gate.create", "an empty profile could not be created")
}

// Names lists the gates, as files of a profile.
func (s Set) Names() []string {
	var names []string
	for _, db := range s.databases {
		names = append(names, filepath.Join(filepath.FromSlash(db), current))
	}
	return append(names, s.files...)
}

// Fill prepares an environment's profile in the folder where it waits. Chrome waits for
// every gated database. So Fill creates an empty one for each that is missing or has
// no valid CURRENT. A missing folder counts as an empty environment.
func (s Set) Fill(waiting string) error {
	for _, db := range s.databases {
		if err := fill(filepath.Join(waiting, filepath.FromSlash(db))); err != nil {
			return fault.Wrap(err, fault.Internal, "gate.fill", "the profile could not be prepared for Chrome")
		}
	}
	return nil
}

func fill(folder string) error {
	if info, err := os.Lstat(filepath.Join(folder, current)); err == nil && info.Mode().IsRegular() && info.Size() <= maxCurrent {
		return nil
	}
	above := filepath.Dir(folder)
	if info, err := os.Lstat(above); err == nil && !info.IsDir() { // only in a crafted archive
		if err := os.Remove(above); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	return errors.Join(leveldb.Write(root, ".", nil), root.Close())
}

// ErrConflict is the cause of an error of [Set.Open]: Chrome has created or replaced a file
// itself, so this Chrome opens other files than those with a gate.
var ErrConflict = errors.New("this Chrome opens other files at its start")

// TooLarge returns the first file of an environment's profile that is too large for its
// gate; "" if there is none.
func (s Set) TooLarge(waiting string) string {
	for _, name := range s.files {
		folder, begin := path.Dir(name), path.Base(name)
		if name == profile.SessionGate { // until it enters, it has the name that Chrome gave it
			begin = "Session_"
		}
		entries, _ := os.ReadDir(filepath.Join(waiting, folder)) // without the folder there is no file
		for _, e := range entries {
			if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), begin) && info.Size() > maxFile {
				return path.Join(folder, e.Name())
			}
		}
	}
	return ""
}

// Open moves a filled profile into the one that a Chrome runs on, and opens the gates. After
// success all files are in place. An error is browser_failed: that Chrome must be ended, and
// its profile removed with it. rest opens the gates that the first page does not need; Chrome
// cannot close before that.
func (s Set) Open(running, waiting string) (rest func() error, err error) {
	err = s.move(running, waiting, ".")
	var later []func() error
	for _, name := range s.Names() {
		var write func() error
		if err == nil {
			write, err = openGate(filepath.Join(running, name), filepath.Join(waiting, name))
		}
		switch {
		case err != nil:
		case slices.Contains(s.later, strings.TrimSuffix(filepath.ToSlash(name), "/"+current)):
			later = append(later, write)
		default:
			err = write()
		}
	}
	return func() error {
		var errs []error
		for _, write := range later {
			errs = append(errs, write())
		}
		later = nil
		return errors.Join(errs...)
	}, fault.Wrap(err, fault.BrowserFailed, "gate.open", "the profile could not be moved into the running Chrome")
}

// move moves the contents of a folder of the waiting profile. Folders may exist in both
// profiles. A file may not, unless nothing of the user is in it: Chrome may have opened it.
func (s Set) move(running, waiting, folder string) error {
	entries, err := os.ReadDir(filepath.Join(waiting, folder))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(folder, e.Name())
		old, to := filepath.Join(waiting, name), filepath.Join(running, name)
		there, err := os.Lstat(to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = os.Rename(old, to)
		case err != nil:
		case there.Mode().Type() == fs.ModeNamedPipe: // its gate is opened last
		case slices.Contains(s.kept, name), profile.Droppable(path.Join(profile.Default, filepath.ToSlash(name))):
		case there.IsDir() && e.IsDir():
			err = s.move(running, waiting, name)
		default:
			err = fmt.Errorf("%w: Chrome's profile already has %s", ErrConflict, filepath.ToSlash(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openGate replaces a pipe by a file, if there is one. write then writes the file's content
// to a reader that waits at the pipe. The pipe is opened for reading as well, so opening and
// writing do not wait for a reader (fifo(7)). A Chrome that has not reached the pipe yet
// finds the file.
func openGate(pipe, file string) (write func() error, err error) {
	body, err := os.ReadFile(file)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	gate, err := os.OpenFile(pipe, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: Chrome has removed %s", ErrConflict, filepath.Base(pipe))
	}
	if err != nil {
		return nil, err
	}
	err = checkPipe(gate, len(body))
	switch {
	case err != nil:
	case missing:
		err = os.Remove(pipe) // the reader finds the pipe's end, as in an empty file
	default:
		err = os.Rename(file, pipe)
	}
	if err != nil {
		return nil, errors.Join(err, gate.Close())
	}
	return func() error { return errors.Join(fillPipe(gate, body), gate.Close()) }, nil
}

// checkPipe returns an error if Chrome has replaced a gate, and makes room for a number of
// bytes.
func checkPipe(pipe *os.File, size int) error {
	info, err := pipe.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeNamedPipe {
		return fmt.Errorf("%w: Chrome has replaced %s instead of waiting for it", ErrConflict, filepath.Base(pipe.Name()))
	}
	return growPipe(pipe, size)
}

// maxFile is how many bytes an unprivileged process may let a pipe hold (pipe(7),
// /proc/sys/fs/pipe-max-size).
const maxFile = 1 << 20

// growPipe makes a pipe so large that a write does not wait for a reader.
func growPipe(pipe *os.File, size int) error {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		holds, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		if err == nil && holds < size {
			_, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size)
		}
		failed = err
	})
	return errors.Join(err, failed)
}

// fillPipe writes to a pipe that is large enough. It does not wait: a pipe without room has been
// filled by Chrome itself.
func fillPipe(pipe *os.File, body []byte) error {
	if len(body) == 0 {
		return nil
	}
	raw, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	written := 0
	var failed error
	err = raw.Control(func(fd uintptr) { written, failed = unix.Write(int(fd), body) })
	if err = errors.Join(err, failed); err == nil && written < len(body) {
		err = fmt.Errorf("%w: Chrome has filled %s", ErrConflict, filepath.Base(pipe.Name()))
	}
	return err
}
