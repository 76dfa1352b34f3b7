package snapshot

import (
	"errors"
	"os"
	"path"
)

// folder is one that is open: an archive's files come folder by folder, and a
// path below the root costs a step for each of its folders every time.
type folder struct {
	name string
	root *os.Root
}

// folder makes a folder and those above it. What is there already must be a
// folder and not a link to one.
func (u *unpacker) folder(name string) error {
	if _, known := u.dirs[name]; known {
		return nil
	}
	if u.seen[name] {
		return irregular("its archive holds a file below a file")
	}
	if err := u.folder(path.Dir(name)); err != nil {
		return err
	}
	err := u.root.Mkdir(name, dirMode.Perm())
	switch {
	case err == nil:
		u.made = append(u.made, name)
		err = u.own(name)
	case errors.Is(err, os.ErrExist):
		info, lerr := u.root.Lstat(name)
		if lerr == nil && info.IsDir() {
			err = nil
		}
	}
	if err != nil {
		return local(err)
	}
	u.dirs[name] = struct{}{}
	return nil
}

// open gives a folder that is there.
func (u *unpacker) open(name string) (*os.Root, error) {
	if name == "." {
		return u.root, nil
	}
	if u.last.root != nil {
		if u.last.name == name {
			return u.last.root, nil
		}
		if err := u.last.root.Close(); err != nil {
			return nil, err
		}
	}
	u.last = folder{}
	root, err := u.root.OpenRoot(name)
	if err == nil {
		u.last = folder{name, root}
	}
	return root, err
}
