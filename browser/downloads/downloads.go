// Package downloads gives finished downloads the names that people expect.
//
// Chrome writes each download to one folder, under the download's GUID. When the download
// is complete, it moves to the folder of the session's files, under the name that the site
// suggested. A second download of that name gets a number, so none is ever overwritten. In
// the first folder a symbolic link with the GUID then holds the name, so that the file can
// be found by either.
//
// Chrome can write to both folders, so nothing in them is trusted: every path is resolved
// inside the run directory.
package downloads

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/stasisd/stasis/fault"
)

// Folder holds the downloads of one run directory. Its methods are safe for concurrent
// use.
type Folder struct {
	run     string // the run directory
	byGUID  string // folder in run: unfinished downloads, and links to finished ones
	byNames string // folder in run: the session's files
}

// In returns the downloads of a run directory. incoming is the folder that Chrome writes
// to and files that of the session's files; both are names in the run directory.
func In(run, incoming, files string) *Folder {
	return &Folder{run: run, byGUID: incoming, byNames: files}
}

// maxName is the longest name of a file on Linux, in bytes. maxNumber bounds how many
// downloads may have one name.
const (
	maxName   = 255
	maxNumber = 100_000
)

// guidPattern is the form of Chrome's GUIDs (base::Uuid).
var guidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// Finish moves a complete download to the session's files and returns its name there. If
// it was moved before, Finish returns that name and changes nothing.
func (f *Folder) Finish(guid, suggested string) (name string, err error) {
	const op = "downloads.finish"
	if !guidPattern.MatchString(guid) {
		return "", fault.New(fault.BrowserFailed, op, "Chrome gave the download no GUID")
	}
	root, err := os.OpenRoot(f.run)
	if err != nil {
		return "", fault.Wrap(err, fault.StoreFailed, op, "the run directory cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	from := path.Join(f.byGUID, guid)
	if name, err := root.Readlink(from); err == nil && path.Base(name) == name {
		return name, nil
	}
	// A link never replaces a file.
	name, err = Unused(clean(suggested), func(name string) error { return root.Link(from, path.Join(f.byNames, name)) })
	if err == nil {
		if err = errors.Join(root.Remove(from), root.Symlink(name, from)); err != nil {
			err = errors.Join(err, root.Remove(path.Join(f.byNames, name))) // otherwise a repeat would store it twice
		}
	}
	if err != nil {
		return "", fault.Wrap(err, fault.StoreFailed, op, "the download could not be moved to the session's files")
	}
	return name, nil
}

// Unused calls store with a name, and with numbers added to it until store returns another
// error than [fs.ErrExist]. It returns the last name and error.
func Unused(name string, store func(name string) error) (stored string, err error) {
	stem, extension := split(name)
	for n := range maxNumber {
		stored = numbered(stem, extension, n)
		if err = store(stored); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return stored, err
}

// Adopt lets a GUID lead to a file, which was downloaded elsewhere.
func (f *Folder) Adopt(guid, name string) error {
	const op = "downloads.adopt"
	if !guidPattern.MatchString(guid) || path.Base(name) != name {
		return fault.New(fault.StoreFailed, op, "the download's GUID or the name of its file is not valid")
	}
	root, err := os.OpenRoot(f.run)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the run directory cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	return fault.Wrap(root.Symlink(name, path.Join(f.byGUID, guid)), fault.StoreFailed, op, "the download's GUID could not be stored")
}

// Renumber gives the file with this name another one, with a number. Its GUID leads to that.
func (f *Folder) Renumber(name string) error {
	const op = "downloads.renumber"
	root, err := os.OpenRoot(f.run)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the run directory cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	guid := f.GUIDs()[name]
	other, err := Unused(name, func(other string) error {
		return root.Link(path.Join(f.byNames, name), path.Join(f.byNames, other))
	})
	if err == nil && guid != "" {
		link := path.Join(f.byGUID, guid)
		err = errors.Join(root.Remove(link), root.Symlink(other, link))
	}
	if err == nil {
		err = root.Remove(path.Join(f.byNames, name))
	}
	return fault.Wrap(err, fault.StoreFailed, op, "a download could not be renamed")
}

// Unfinished reports whether there are files of downloads that have not been moved.
func (f *Folder) Unfinished() (bool, error) {
	names, err := f.unfinished()
	return len(names) > 0, err
}

// Discard removes the files of downloads that have not been moved. No Chrome may run.
func (f *Folder) Discard() error {
	const op = "downloads.discard"
	names, err := f.unfinished()
	if err != nil || len(names) == 0 {
		return err
	}
	root, err := os.OpenRoot(f.run)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the run directory cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	for _, name := range names {
		err = errors.Join(err, root.Remove(path.Join(f.byGUID, name)))
	}
	return fault.Wrap(err, fault.StoreFailed, op, "unfinished downloads could not be removed")
}

// unfinished returns the names of the files of downloads that have not been moved. A finished one
// has left a link.
func (f *Folder) unfinished() (names []string, err error) {
	const op = "downloads.unfinished"
	root, err := os.OpenRoot(f.run)
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, op, "the run directory cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	entries, err := fs.ReadDir(root.FS(), f.byGUID)
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, fault.Wrap(err, fault.StoreFailed, op, "the downloads cannot be listed")
}

// Find returns the name of the file of a finished download; "" if there is none.
func (f *Folder) Find(guid string) string {
	if !guidPattern.MatchString(guid) {
		return ""
	}
	root, err := os.OpenRoot(f.run)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }() // only a handle
	name, err := root.Readlink(path.Join(f.byGUID, guid))
	if err != nil || path.Base(name) != name {
		return ""
	}
	return name
}

// GUIDs returns the GUIDs of finished downloads, by the names of their files.
func (f *Folder) GUIDs() map[string]string {
	guids := map[string]string{}
	root, err := os.OpenRoot(f.run)
	if err != nil {
		return guids
	}
	defer func() { _ = root.Close() }() // only a handle
	entries, err := fs.ReadDir(root.FS(), f.byGUID)
	if err != nil {
		return guids
	}
	for _, e := range entries {
		if !guidPattern.MatchString(e.Name()) {
			continue
		}
		if name, err := root.Readlink(path.Join(f.byGUID, e.Name())); err == nil {
			guids[name] = e.Name()
		}
	}
	return guids
}

// Size returns the bytes of the finished downloads whose files are still there. A file that
// cannot be read counts as empty.
func (f *Folder) Size() (bytes int64) {
	root, err := os.OpenRoot(f.run)
	if err != nil {
		return 0
	}
	defer func() { _ = root.Close() }() // only a handle
	for name := range f.GUIDs() {
		if info, err := root.Lstat(path.Join(f.byNames, name)); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
	}
	return bytes
}

// Forget is called when the file with this name is removed or replaced. No GUID leads to
// it any more.
func (f *Folder) Forget(name string) error {
	guid, known := f.GUIDs()[name]
	if !known {
		return nil
	}
	root, err := os.OpenRoot(f.run)
	if err != nil {
		return fault.Wrap(err, fault.StoreFailed, "downloads.forget", "the run directory cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	err = root.Remove(path.Join(f.byGUID, guid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another call removed it
	}
	return fault.Wrap(err, fault.StoreFailed, "downloads.forget", "the download's GUID could not be removed")
}

// clean makes a suggested name a path element that a listing shows: without separators and
// control characters, and not hidden.
func clean(suggested string) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(suggested, "_"))
	if name = strings.TrimSpace(name); name == "" {
		return "download"
	}
	if name[0] == '.' {
		name = "_" + name[1:]
	}
	return name
}

// split separates the extension from a name. It keeps those of compressed archives whole,
// such as .tar.gz.
func split(name string) (stem, extension string) {
	extension = path.Ext(name)
	stem = strings.TrimSuffix(name, extension)
	if inner := path.Ext(stem); inner == ".tar" {
		stem, extension = strings.TrimSuffix(stem, inner), inner+extension
	}
	if len(extension) > maxName/2 {
		return name, ""
	}
	return stem, extension
}

// numbered returns the name of download n of that name, of at most maxName bytes: as Chrome
// does, the first has no number, and the next one is "report (1).txt".
func numbered(stem, extension string, n int) string {
	if n > 0 {
		extension = fmt.Sprintf(" (%d)%s", n, extension)
	}
	if over := len(stem) + len(extension) - maxName; over > 0 {
		stem = strings.ToValidUTF8(stem[:len(stem)-over], "")
	}
	return stem + extension
}
