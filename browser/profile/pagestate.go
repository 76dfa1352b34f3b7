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

// These constants describe Chrome's session files, as found in 156
// (components/sessions/core and third_party/blink/common/page_state). The page state of a
// history entry lists the files that its form held. Chrome lets the restored page read
// them, wherever they are; neither its URL blocklist nor CDP shows that. An imported
// profile could list any file.
const (
	snssMagic        = "SNSS"
	navigationOpen   = 6 // UpdateTabNavigation of Session_* files
	navigationClosed = 1 // UpdateTabNavigation of Tabs_* files, which hold closed tabs
	mojoPageState    = 26
	maxSessionFile   = 64 << 20
	unknownEncoding  = math.MaxInt32 // a page state version that Chrome does not read
)

// plainSNSS lists the versions of session files that are not encrypted: without and with
// a marker after the initial state.
var plainSNSS = map[uint32]bool{1: true, 3: true}

// dropFormFiles makes Chrome ignore the page state of every entry in the folder's session
// files that lists files. The entry keeps its address and title. Session files that
// Stasis cannot read are removed, including the encrypted ones: Chrome writes both kinds
// and restores from either.
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
	if err != nil { // not a folder
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
			command = navigationClosed
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

// hideFormFiles changes a session file in place and reports whether it did. Each command
// consists of its length (2 bytes), its kind (1 byte) and its content.
func hideFormFiles(raw []byte, command byte) (changed bool) {
	for kind, content := range commands(raw) {
		if kind == command {
			changed = hideState(content) || changed
		}
	}
	return changed
}

// hideState changes the page state of one UpdateTabNavigation command: tab, index of the
// entry, address, title, page state.
func hideState(content []byte) bool {
	p := openPickle(content)
	p.skip(4)
	p.skip(4)
	p.take(1)
	p.take(2)
	state := openPickle(p.take(1))
	version := state.skip(4)
	if version == nil {
		return false // there is no page state, or Chrome cannot read it
	}
	if binary.LittleEndian.Uint32(version) >= mojoPageState && !listsFiles(state.take(1)) {
		return false
	}
	binary.LittleEndian.PutUint32(version, unknownEncoding)
	return true
}

// listsFiles reports whether a page state in Mojo's encoding lists files. The first
// member of RawPageState is a pointer to an array, relative to the pointer's position.
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

// pickle is the unread rest of a base::Pickle of Chrome: values are aligned to four
// bytes.
type pickle []byte

// openPickle skips the header, which is everything before the payload of the stated
// length.
func openPickle(raw []byte) *pickle {
	p := pickle(nil)
	if len(raw) >= 4 {
		if size := binary.LittleEndian.Uint32(raw); uint64(size)+4 <= uint64(len(raw)) {
			p = raw[len(raw)-int(size):]
		}
	}
	return &p
}

// skip returns the next n bytes and advances past them and their padding; nil if there
// are fewer.
func (p *pickle) skip(n int) []byte {
	if n < 0 || n > len(*p) {
		*p = nil
		return nil
	}
	value := (*p)[:n]
	*p = (*p)[min((n+3)&^3, len(*p)):]
	return value
}

// take returns the next string or blob; element is the size of its elements in bytes.
func (p *pickle) take(element int) []byte {
	length := p.skip(4)
	if length == nil {
		return nil
	}
	return p.skip(int(int32(binary.LittleEndian.Uint32(length))) * element)
}
