// Package profile knows Chrome's user data directory on disk: which of its
// files are a user's environment, which of two copies of it is newer
// ([Reconcile]), and how a profile is prepared before Chrome reads it. Nothing
// above it knows a file of Chrome's by name.
//
// Below it, inspect reads and counts what a profile holds, filter keeps some
// origins, localstorage and sessionstorage read and write these databases, and gate
// lets the shell start before its profile is there.
//
// A user data directory holds one profile that matters, the folder named
// [Default], or [Spare] where nothing was brought in beside the profile that
// Chrome started with (see [Folder]). Files beside that folder (Local State,
// Crashpad, component downloads) belong to the Chrome that runs, not to the
// user's environment: cookies and passwords are readable elsewhere because every
// Chrome is started with --password-store=basic, whose key is fixed.
package profile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// Extensions is the folder of the environment's unpacked extensions inside the
// user data directory, one by ID each, and the first element of their files'
// names in an archive.
const Extensions = "extensions"

// Default is the folder of the environment's profile inside the user data
// directory, and the first element of its files' names in an archive.
const Default = "Default"

// Spare is the folder of the profile that every Chrome starts with, empty. A
// fresh session keeps it; where an environment is brought in beside it, it is
// closed and of no more interest.
const Spare = "Spare"

// Folder is the folder of a user data directory that holds the environment.
func Folder(userDataDir string) string {
	if isDir(userDataDir, Default) || !isDir(userDataDir, Spare) {
		return Default
	}
	return Spare
}

// Path is where the environment's folder is.
func Path(userDataDir string) string { return filepath.Join(userDataDir, Folder(userDataDir)) }

// Settle gives the environment's folder the name [Default], so that Chrome can be
// started anew and the environment brought in. No Chrome may run on it.
func Settle(userDataDir string) error {
	if err := checkReal(userDataDir); err != nil || Folder(userDataDir) == Default {
		return err
	}
	err := os.Rename(filepath.Join(userDataDir, Spare), filepath.Join(userDataDir, Default))
	return fault.Wrap(err, fault.StoreFailed, "profile.settle", "the profile's folder could not be renamed")
}

func isDir(userDataDir, folder string) bool {
	info, err := os.Lstat(filepath.Join(userDataDir, folder))
	return err == nil && info.IsDir()
}

// File is one file or folder of an environment.
type File struct {
	Name string // slash-separated, from the user data directory: "Default/Cookies"
	Path string // where it is on disk
	Mode fs.FileMode
	Size int64 // bytes
	// Data stands in an archive in place of what the file holds; nil: the file's own.
	Data []byte
	info fs.FileInfo
}

// Select lists what of a user data directory belongs into an archive, sorted
// by name: the extensions, and the profile ([Folder]) without caches, locks,
// sockets, links and whatever else Chrome makes again by itself. A folder comes
// before what is in it; empty folders are left out.
//
// It reads the folder only. Chrome must have closed it or stand still; of one
// that runs the list is a guess. When ctx ends it stops, with timeout.
func Select(ctx context.Context, userDataDir string) ([]File, error) {
	const op = "profile.select"
	if err := checkReal(userDataDir); err != nil {
		return nil, err
	}
	files, err := list(ctx, userDataDir, Folder(userDataDir), Default)
	if _, missing := os.Lstat(filepath.Join(userDataDir, Extensions)); err == nil && missing == nil {
		var extensions []File
		extensions, err = list(ctx, userDataDir, Extensions, Extensions)
		files = append(files, extensions...)
	}
	if ctx.Err() != nil {
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, op, "the profile could not be listed in time")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.SaveFailed, op, "the profile could not be read")
	}
	sort.Slice(files, func(i, j int) bool { return files[i].Name < files[j].Name })
	return files, nil
}

// list lists what is kept of one folder of a user data directory, named as if
// the folder had the name that it has in archives.
func list(ctx context.Context, userDataDir, folder, as string) ([]File, error) {
	var files []File
	root := filepath.Join(userDataDir, folder)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) && p != root {
			return nil // a Chrome that runs, whose list is a guess, has just removed it
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		name := path.Join(as, filepath.ToSlash(rel))
		if Droppable(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		files = append(files, File{Name: name, Path: p, Mode: info.Mode().Perm(), Size: info.Size(), info: info})
		return nil
	})
	return files, err
}

// checkReal refuses a user data directory that is not one but a link: the folder
// it lies in is Chrome's, and what a link names is somebody else's.
func checkReal(userDataDir string) error {
	info, err := os.Lstat(userDataDir)
	if err == nil && !info.IsDir() {
		err = fs.ErrInvalid
	}
	return fault.Wrap(err, fault.SaveFailed, "profile.check", "the user data directory is not there")
}

// Size is the sum of the files' sizes in bytes.
func Size(files []File) int64 {
	var n int64
	for _, f := range files {
		n += f.Size
	}
	return n
}

// Accept reports whether a file of an archive may be laid into a user data
// directory. Only the profile's own files and those of extensions may: another
// folder beside it could name programs of the host for Chrome to run
// (NativeMessagingHosts) or hold a foreign lock (Singleton*).
func Accept(name string) bool {
	if _, _, ok := InExtension(name); ok {
		return path.Clean(name) == name && !Droppable(name)
	}
	if path.Clean(name) != name || !strings.HasPrefix(name, Default+"/") {
		return name == Default
	}
	for _, element := range strings.Split(name, "/") {
		if element == "NativeMessagingHosts" || strings.HasPrefix(element, "Singleton") {
			return false
		}
	}
	return !Droppable(name)
}

var extensionID = regexp.MustCompile(`^[a-p]{32}$`)

// InExtension tells of an archive's name whether it is a file of an extension,
// of which one, and its name there.
func InExtension(name string) (id, file string, ok bool) {
	rest, ok := strings.CutPrefix(name, Extensions+"/")
	if !ok {
		return "", "", false
	}
	id, file, ok = strings.Cut(rest, "/")
	return id, file, ok && file != "" && extensionID.MatchString(id)
}

// Exists reports whether the user data directory holds a profile.
func Exists(userDataDir string) bool {
	return isDir(userDataDir, Folder(userDataDir))
}
