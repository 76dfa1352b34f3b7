// Package gate lets the headless shell start before its profile is unpacked.
//
// While it starts, the shell opens little of a profile (measured with 156): three LevelDB
// databases, besides files that Chrome creates again. Each database has a gate: its file
// CURRENT, which LevelDB reads first, is a named pipe, so only a reader of that database
// waits. The shell opens all other files when a page first needs them, and by then they
// are there.
package gate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/fault"
)

// gated lists the databases that have a gate, as folders of a profile.
var gated = []string{"Local Storage/leveldb", "Service Worker/Database", "PersistentOriginTrials"}

const current = "CURRENT"

// maxCurrent bounds the file CURRENT, which contains one file name, in bytes.
const maxCurrent = 64

// Create creates an empty profile (…/Default) with gates, and replaces what is there. No
// Chrome may be running on it.
func Create(profile string) error {
	err := os.RemoveAll(profile)
	for _, db := range gated {
		folder := filepath.Join(profile, filepath.FromSlash(db))
		if err == nil {
			err = os.MkdirAll(folder, 0o700)
		}
		if err == nil {
			err = unix.Mkfifo(filepath.Join(folder, current), 0o600)
		}
	}
	return fault.Wrap(err, fault.Internal, "gate.lay", "an empty profile could not be created")
}

// Fill prepares an environment's profile in the folder where it waits. The shell waits
// for every gated database. So Fill creates an empty one for each that is missing or has
// no valid CURRENT. A missing folder counts as an empty environment.
func Fill(waiting string) error {
	for _, db := range gated {
		if err := fill(filepath.Join(waiting, filepath.FromSlash(db))); err != nil {
			return fault.Wrap(err, fault.Internal, "gate.fill", "the profile could not be prepared for the shell")
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

// Open moves a filled profile into the one that a shell runs on, and opens the gates. An
// error is browser_failed: the shell must be ended, and its profile removed with it.
func Open(profile, waiting string) error {
	err := move(profile, waiting, ".")
	for _, db := range gated {
		if err == nil {
			name := filepath.Join(filepath.FromSlash(db), current)
			err = openGate(filepath.Join(profile, name), filepath.Join(waiting, name))
		}
	}
	return fault.Wrap(err, fault.BrowserFailed, "gate.open", "the profile could not be moved into the running shell")
}

// move moves the contents of a folder of the waiting profile. Only the folders of gated
// databases may exist in both profiles: the shell may have opened anything else that it
// has created.
func move(profile, waiting, folder string) error {
	entries, err := os.ReadDir(filepath.Join(waiting, folder))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(folder, e.Name())
		old, to := filepath.Join(waiting, name), filepath.Join(profile, name)
		there, err := os.Lstat(to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = os.Rename(old, to)
		case err != nil:
		case there.Mode().Type() == fs.ModeNamedPipe: // its gate is opened last
		case there.IsDir() && e.IsDir() && containsGated(name):
			err = move(profile, waiting, name)
		default:
			err = errors.New("the shell's profile already has " + filepath.ToSlash(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// containsGated reports whether a folder is a gated database or contains one.
func containsGated(folder string) bool {
	return slices.ContainsFunc(gated, func(db string) bool {
		return strings.HasPrefix(db+"/", filepath.ToSlash(folder)+"/")
	})
}

// openGate replaces a pipe by a file and writes the file's content to a reader that waits
// at the pipe. The pipe is opened for reading as well, so opening and writing do not wait
// for a reader (fifo(7)). A shell that has not reached the pipe yet finds the file.
func openGate(pipe, file string) (err error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	gate, err := os.OpenFile(pipe, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gate.Close()) }()
	info, err := gate.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeNamedPipe {
		return errors.New("the shell has replaced a database instead of waiting for it")
	}
	if err := os.Rename(file, pipe); err != nil {
		return err
	}
	_, err = gate.Write(body)
	return err
}
