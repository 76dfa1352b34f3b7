package inspect

import "io/fs"

// plainFiles is a file system of which plain files and folders alone are
// opened: what Chrome's user has put in their place, such as a pipe, would hold
// its reader up for ever.
type plainFiles struct{ fs.FS }

// Open opens a plain file or a folder; of anything else it is fs.ErrInvalid.
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
