package snapshot

import (
	"errors"
	"os"
	"path"
	"strings"
)

// folder is one that is open: an archive's files come folder by folder, and a
// path below the root costs a step for each of its folders every time.
type folder struct {
	name string
	root *os.Root
}

// folder makes a folder and those above it. What is there already must be a
// folder and not a link to one. Folders that names
// only imply count as entries.
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
	if !listed {
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
		err = u.own(at, base)
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

// open gives a folder that is there. From one that is open to one below it costs
// the steps between them alone.
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
