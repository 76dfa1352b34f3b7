package profile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// Chrome's session files, as found in 156 (components/sessions/core and
// third_party/blink/common/page_state). The page state of a history entry lists the
// files that its form held. Chrome lets the page that comes back read them, wherever
// they are, and neither its list of refused addresses nor CDP shows that. An imported
// profile could list any file.
const (
	snssMagic       = "SNSS"
	navigationOpen  = 6 // UpdateTabNavigation of Session_* files
	navigationShut  = 1 // UpdateTabNavigation of Tabs_* files, which hold closed tabs
	mojoPageState   = 26
	maxSessionFile  = 64 << 20
	unknownEncoding = math.MaxInt32 // a page state of a version that Chrome does not read
)

// plainSNSS are the versions of session files that are not encrypted: without and with
// a mark after the state at the start.
var plainSNSS = map[uint32]bool{1: true, 3: true}

// dropFormFiles makes Chrome ignore the page state of every entry in the folder's
// session files that lists files. The entry keeps its address and title. Session files
// that cannot be read here are removed, the encrypted ones among them: Chrome writes
// both kinds and restores from either.
func dropFormFiles(root *os.Root, folder string) error {
	const op = "profile.formfiles"
	if err := root.RemoveAll(path.Join(folder, "Sessions_Encrypted")); err != nil {
		return fault.Wrap(err, fault.StoreFailed, op, "the encrypted session files could not be removed")
	}
	sessions := path.Join(folder, "Sessions")
	entries, err := fs.ReadDir(root.FS(), sessions)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil { // no folder
		return fault.Wrap(root.RemoveAll(sessions), fault.StoreFailed, op, "unreadable session files could not be removed")
	}
	for _, e := range entries {
		name := path.Join(sessions, e.Name())
		raw, err := readSession(root, name)
		if err != nil {
			if err := root.RemoveAll(name); err != nil {
				return fault.Wrap(err, fault.StoreFailed, op, "an unreadable session file could not be removed")
			}
			continue
		}
		command := byte(navigationOpen)
		if strings.HasPrefix(e.Name(), "Tabs_") {
			command = navigationShut
		}
		if !hideFormFiles(raw, command) {
			continue
		}
		if err := root.WriteFile(name, raw, 0o600); err != nil {
			return fault.Wrap(err, fault.StoreFailed, op, "a session file could not be written")
		}
	}
	return nil
}

var errNoSession = errors.New("not a plain session file")

func readSession(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSessionFile {
		return nil, errors.Join(err, errNoSession)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	raw := make([]byte, info.Size())
	if _, err := f.ReadAt(raw, 0); err != nil && len(raw) > 0 {
		return nil, err
	}
	if len(raw) < 8 || !bytes.HasPrefix(raw, []byte(snssMagic)) || !plainSNSS[binary.LittleEndian.Uint32(raw[4:])] {
		return nil, errNoSession
	}
	return raw, nil
}

// hideFormFiles changes a session file in place and reports whether it did. Each
// command has its length (2 bytes), its kind (1 byte) and its content.
func hideFormFiles(raw []byte, command byte) (changed bool) {
	for at := 8; at+3 <= len(raw); {
		size := int(binary.LittleEndian.Uint16(raw[at:]))
		at += 2
		if size == 0 || at+size > len(raw) {
			break // Chrome reads no further either
		}
		if raw[at] == command {
			changed = hideState(raw[at+1:at+size]) || changed
		}
		at += size
	}
	return changed
}

// hideState changes the page state of one UpdateTabNavigation: the tab, the entry's
// index, its address, its title, the state.
func hideState(content []byte) bool {
	p := openPickle(content)
	p.skip(4)
	p.skip(4)
	p.take(1)
	p.take(2)
	state := openPickle(p.take(1))
	version := state.skip(4)
	if version == nil {
		return false // there is none, or Chrome cannot read it
	}
	if binary.LittleEndian.Uint32(version) >= mojoPageState && !listsFiles(state.take(1)) {
		return false
	}
	binary.LittleEndian.PutUint32(version, unknownEncoding)
	return true
}

// listsFiles reports whether a page state in Mojo's encoding lists files: the first
// member of RawPageState is a pointer to an array, relative to itself.
func listsFiles(state []byte) bool {
	const pointer, count = 8, 4
	if len(state) < pointer+8 {
		return false // not valid, and Chrome does not read it
	}
	to := binary.LittleEndian.Uint64(state[pointer:])
	if to == 0 || to > uint64(len(state)-pointer-count-4) {
		return false
	}
	return binary.LittleEndian.Uint32(state[pointer+int(to)+count:]) > 0
}

// pickle is what is left of Chrome's base::Pickle: values at multiples of four bytes.
type pickle []byte

// openPickle skips the header, which is all in front of the length that it states.
func openPickle(raw []byte) *pickle {
	p := pickle(nil)
	if len(raw) >= 4 {
		if size := binary.LittleEndian.Uint32(raw); uint64(size)+4 <= uint64(len(raw)) {
			p = raw[len(raw)-int(size):]
		}
	}
	return &p
}

// skip returns the next n bytes and goes past them; nil where there are less.
func (p *pickle) skip(n int) []byte {
	if n < 0 || n > len(*p) {
		*p = nil
		return nil
	}
	value := (*p)[:n]
	*p = (*p)[min((n+3)&^3, len(*p)):]
	return value
}

// take returns the next text or blob, of elements of so many bytes.
func (p *pickle) take(element int) []byte {
	length := p.skip(4)
	if length == nil {
		return nil
	}
	return p.skip(int(int32(binary.LittleEndian.Uint32(length))) * element)
}
