package inspect

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/fault"
)

// maxSessionFile bounds how much of a session file is read, in bytes.
const maxSessionFile = 32 << 20

// Tabs is what a profile's files hold of tabs, including closed ones. It is enough to
// decide whether the state of a tab that could not be read is on disk.
type Tabs struct {
	// Items counts the sessionStorage items of all tabs by storage key; nil if it was not
	// read.
	Items map[string]int
	// session is Chrome's newest session file, which has the addresses of the
	// back/forward lists as plain text.
	session []byte
}

// Names reports whether the session file contains an address.
func (t Tabs) Names(url string) bool { return bytes.Contains(t.session, []byte(url)) }

// ReadTabs reads the tabs from the folder of a profile that Chrome has closed.
func ReadTabs(ctx context.Context, dir string) (Tabs, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tabs{}, fault.Wrap(err, fault.StoreFailed, "inspect.tabs", "the profile cannot be read")
	}
	defer func() { _ = root.Close() }() // only a handle
	s := survey{ctx: ctx, root: root, fsys: plainFiles{root.FS()}, dir: dir}
	return Tabs{Items: s.sessionItems(), session: s.sessionFile()}, nil
}

// ReadSessionFile reads only the session file, which Chrome may be writing.
func ReadSessionFile(ctx context.Context, dir string) (Tabs, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tabs{}, fault.Wrap(err, fault.StoreFailed, "inspect.session_file", "the profile cannot be read")
	}
	defer func() { _ = root.Close() }() // only a handle
	s := survey{ctx: ctx, root: root, fsys: plainFiles{root.FS()}, dir: dir}
	return Tabs{session: s.sessionFile()}, nil
}

// sessionItems counts sessionStorage items.
func (s *survey) sessionItems() map[string]int {
	c, err := sessionstorage.Read(s.ctx, s.fsys)
	if err != nil || !c.Known() {
		return nil
	}
	return c.Items()
}

// sessionFile returns the newest of Chrome's files of open tabs. Their names end with a
// time, always with the same number of digits.
func (s *survey) sessionFile() []byte {
	names := slices.DeleteFunc(s.names("Sessions"), func(name string) bool { return !strings.HasPrefix(name, "Session_") })
	if len(names) == 0 {
		return nil
	}
	file, err := s.fsys.Open("Sessions/" + slices.Max(names))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(file, maxSessionFile))
	if err != nil {
		return nil
	}
	return raw
}
