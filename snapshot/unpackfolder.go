package snapshot

import (
	"errors"
	"os"
	"path"
	"strings"
)

// folder is an open folder. An archive's files come folder by folder, and opening a path
// from the root costs one step per element every time.
type folder struct {
	name string
	root *os.Root
}

// folder creates a folder and its parents. An existing one must be a folder and not a
// link to one. Folders that only names imply count as entries.
func (u *unpacker) folder(name string, listed bool) error {
	if _, known := u.dirs[name]; known {
		return nil
	}
	if u.seen[name] {
		return irregular("its archive holds a file below a file")
	}
	if err := u.folder(path.Dir(name), false); err != nil {
		return err
	}
	if _, counted := u.headDirs[name]; !listed && !counted {
		if err := u.names.add(name); err != nil {
			return err
		}
	}
	at, err := u.open(path.Dir(name))
	if err != nil {
		return local(err)
	}
	base := path.Base(name)
	err = at.Mkdir(base, dirMode.Perm())
	switch {
	case err == nil:
		u.made = append(u.made, name)
		err = u.ownFolder(at, base)
	case errors.Is(err, os.ErrExist):
		info, lerr := at.Lstat(base)
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

// ownFolder gives a folder to the owner. It opens the folder first: a running Chrome may have
// put another file in its place.
func (u *unpacker) ownFolder(at *os.Root, name string) error {
	if u.opts.Owner == nil {
		return nil
	}
	made, err := at.OpenRoot(name)
	if err != nil {
		return local(err)
	}
	return errors.Join(u.own(made, "."), local(made.Close()))
}

// open returns an existing folder. If a parent folder is open, only the steps below that
// parent are needed.
func (u *unpacker) open(name string) (*os.Root, error) {
	if name == "." {
		return u.root, nil
	}
	from, steps := u.root, name
	if was := u.last; was.root != nil {
		if was.name == name {
			return was.root, nil
		}
		if below, ok := strings.CutPrefix(name, was.name+"/"); ok {
			from, steps = was.root, below
		}
	}
	root, err := from.OpenRoot(steps)
	if u.last.root != nil {
		err = errors.Join(err, u.last.root.Close())
	}
	u.last = folder{}
	if err != nil {
		return nil, err
	}
	u.last = folder{name, root}
	return root, nil
}
