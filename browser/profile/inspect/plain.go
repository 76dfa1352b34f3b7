package inspect

import "io/fs"

// plainFiles is a file system that opens only regular files and folders. Chrome's user
// could put something else in their place, such as a named pipe, which would block a
// reader for ever.
type plainFiles struct{ fs.FS }

// Open opens a regular file or a folder. For anything else it returns fs.ErrInvalid.
func (p plainFiles) Open(name string) (fs.File, error) {
	info, err := fs.Stat(p.FS, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return p.FS.Open(name)
}
