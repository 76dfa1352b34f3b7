// Package gate lets the headless shell start before the profile is there that it
// is to have.
//
// Of a profile the shell opens little while it starts (measured with 156): three
// LevelDB databases, besides what Chrome makes again by itself. Each is gated:
// its file CURRENT, which a LevelDB reads first of all, is a named pipe, so
// whoever opens the database waits there, and nobody else does. All other files
// the shell meets when a page first needs them, and finds them as if they had
// always been there.
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

// gated are the databases, as folders of a profile.
var gated = []string{"Local Storage/leveldb", "Service Worker/Database", "PersistentOriginTrials"}

const current = "CURRENT"

// maxCurrent bounds the file CURRENT, in bytes: it holds one file name.
const maxCurrent = 64

// Lay makes an empty profile (…/Default) with gates, in the place of what is
// there. No Chrome may run on it.
func Lay(profile string) error {
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
	return fault.Wrap(err, fault.Internal, "gate.lay", "an empty profile could not be made")
}

// Fill readies an environment's profile in the folder where it waits: a database
// that it has not, or of which there is no list of files, is an empty one, for
// the shell waits for each. A folder that is not there is an empty environment.
func Fill(waiting string) error {
	for _, db := range gated {
		if err := fill(filepath.Join(waiting, filepath.FromSlash(db))); err != nil {
			return fault.Wrap(err, fault.Internal, "gate.fill", "the profile could not be readied for the shell")
		}
	}
	return nil
}

func fill(folder string) error {
	if info, err := os.Lstat(filepath.Join(folder, current)); err == nil && info.Mode().IsRegular() && info.Size() <= maxCurrent {
		return nil
	}
	above := filepath.Dir(folder)
	if info, err := os.Lstat(above); err == nil && !info.IsDir() { // in an archive that somebody made
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

// Open moves a profile that was filled into the one that a shell runs on, and lets
// the shell have it. An error is browser_failed: the shell has to go, and what it
// has been given with it.
func Open(profile, waiting string) error {
	err := move(profile, waiting, ".")
	for _, db := range gated {
		if err == nil {
			name := filepath.Join(filepath.FromSlash(db), current)
			err = pass(filepath.Join(profile, name), filepath.Join(waiting, name))
		}
	}
	return fault.Wrap(err, fault.BrowserFailed, "gate.open", "the shell that runs could not be given the profile")
}

// move moves what a folder of the waiting profile has. Only the folders of gated
// databases may be in both: what else the shell has made already it may have open.
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
		case there.Mode().Type() == fs.ModeNamedPipe: // it is passed last
		case there.IsDir() && e.IsDir() && leads(name):
			err = move(profile, waiting, name)
		default:
			err = errors.New("it has a " + filepath.ToSlash(name) + " already")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leads reports whether a folder is that of a gated database, or above one.
func leads(folder string) bool {
	return slices.ContainsFunc(gated, func(db string) bool {
		return strings.HasPrefix(db+"/", filepath.ToSlash(folder)+"/")
	})
}

// pass puts a file in the place of a pipe and gives what it holds to whoever waits
// there. Opened for reading too, a pipe waits for nobody (fifo(7)): a shell that
// has not come to it yet finds the file.
func pass(pipe, file string) (err error) {
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
		return errors.New("it has thrown a database away that it was to wait for")
	}
	if err := os.Rename(file, pipe); err != nil {
		return err
	}
	_, err = gate.Write(body)
	return err
}
