// Package profile knows Chrome's user data directory on disk: which of its files are a
// user's environment, which of two copies of it is newer ([Reconcile]), and how a profile
// is prepared before Chrome reads it. No package above it names a file of Chrome's.
//
// Its subpackages: inspect reads and counts what a profile holds; filter keeps some
// origins; localstorage and sessionstorage read and write these databases; gate lets
// Chrome start before its profile is unpacked.
//
// A user data directory holds one profile that is the environment. It is the folder
// [Default], or [Spare] if no environment was loaded beside the profile that Chrome
// started with (see [Folder]). Files beside that folder (Local State, Crashpad, component
// downloads) belong to the running Chrome, not to the user's environment. Cookies and
// passwords can be decrypted elsewhere: every Chrome is started with
// --password-store=basic, whose key is fixed.
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

// Extensions is the folder of the environment's unpacked extensions in the user data
// directory, with one folder for each extension ID. It is also the first element of their
// files' names in an archive.
const Extensions = "extensions"

// Default is the folder of the environment's profile in the user data directory. It is
// also the first element of its files' names in an archive.
const Default = "Default"

// Spare is the folder of the profile with which every Chrome starts, empty. A fresh session
// keeps using it, and so does an environment whose files are moved into it. If an environment
// is loaded beside it, Chrome closes it and it is not used any more.
const Spare = "Spare"

// Folder returns the name of the folder that holds the environment.
func Folder(userDataDir string) string {
	switch {
	case isDir(userDataDir, Default):
		return Default
	case isDir(userDataDir, Spare):
		return Spare
	}
	return Default
}

// Path returns the path of the folder that holds the environment.
func Path(userDataDir string) string { return filepath.Join(userDataDir, Folder(userDataDir)) }

// UseDefaultFolder renames the environment's folder to [Default], so that Chrome can be
// restarted and the environment loaded. No Chrome may be running on it.
func UseDefaultFolder(userDataDir string) error {
	const op = "profile.use_default_folder"
	if err := errors.Join(checkNoLink(userDataDir), checkComplete(userDataDir, op)); err != nil || Folder(userDataDir) == Default {
		return err
	}
	folder := Folder(userDataDir)
	if err := mergeOnDisk(userDataDir); err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the environment's settings could not be merged")
	}
	err := os.Rename(filepath.Join(userDataDir, folder), filepath.Join(userDataDir, Default))
	return fault.Wrap(err, fault.StoreFailed, op, "the profile's folder could not be renamed")
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
	// Data is the content for an archive; nil: the content of the file on disk.
	Data []byte
	// InTail: it comes after all other files in an archive, and a restore may unpack it last.
	InTail bool
	info   fs.FileInfo
}

// Select lists the files of a user data directory that belong in an archive, sorted by
// name: the extensions, and the profile ([Folder]) without caches, empty journals, locks,
// sockets, links and other files that Chrome creates again. A folder comes before its contents; empty
// folders are left out.
//
// It only reads. Chrome must have closed the directory or be frozen; while Chrome runs,
// the list may be out of date. When ctx ends, Select stops with a timeout error.
func Select(ctx context.Context, userDataDir string) ([]File, error) {
	const op = "profile.select"
	if err := errors.Join(checkNoLink(userDataDir), checkComplete(userDataDir, op)); err != nil {
		return nil, err
	}
	files, err := list(ctx, userDataDir, Folder(userDataDir), Default)
	if _, missing := os.Lstat(filepath.Join(userDataDir, Extensions)); err == nil && missing == nil {
		var extensions []File
		extensions, err = list(ctx, userDataDir, Extensions, Extensions)
		files = append(files, extensions...)
	}
	if err == nil {
		files, err = withMerged(userDataDir, files)
	}
	if ctx.Err() != nil {
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, op, "the profile could not be listed in time")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.SaveFailed, op, "the profile could not be read")
	}
	sort.Slice(files, func(i, j int) bool { return files[i].Name < files[j].Name })
	markTail(files)
	return files, nil
}

// list lists the archived files of one folder of a user data directory. as is the
// folder's name in archives.
func list(ctx context.Context, userDataDir, folder, as string) ([]File, error) {
	var files []File
	root := filepath.Join(userDataDir, folder)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) && p != root {
			return nil // a running Chrome has just removed it
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
		if emptyJournal(name, info.Size()) {
			return nil
		}
		files = append(files, File{Name: name, Path: p, Mode: info.Mode().Perm(), Size: info.Size(), info: info})
		return nil
	})
	return files, err
}

// checkNoLink rejects a user data directory that is a link. Chrome can write the folder
// that contains it, and a link could point to someone else's files.
func checkNoLink(userDataDir string) error {
	info, err := os.Lstat(userDataDir)
	if err == nil && !info.IsDir() {
		err = fs.ErrInvalid
	}
	return fault.Wrap(err, fault.SaveFailed, "profile.check", "the user data directory does not exist or is not a folder")
}

// Size returns the sum of the files' sizes in bytes.
func Size(files []File) int64 {
	var n int64
	for _, f := range files {
		n += f.Size
	}
	return n
}

// Accept reports whether a file of an archive may be unpacked into a user data directory.
// Only the profile's own files and those of extensions may. Another folder beside the
// profile could name programs of the host for Chrome to run (NativeMessagingHosts) or
// hold another machine's lock (Singleton*).
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

// InExtension reports whether a name in an archive is a file of an extension, and returns
// the extension's ID and the file's name in it.
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
