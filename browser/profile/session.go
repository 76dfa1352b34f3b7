package profile

import (
	"encoding/binary"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// SessionGate is the session file of a profile for which Chrome waits (package gate). The
// number is a time in Chrome's form, long past.
const SessionGate = "Sessions/Session_13000000000000000"

// noTabs is a session file without tabs: its format and version.
const noTabs = snssMagic + "\x03\x00\x00\x00"

// PlaceSession gives the session file with the tabs of the environment in [Default] the
// name [SessionGate], and removes the others. Without one it writes a file without tabs.
// tabs is how many tabs Chrome will restore from it.
func PlaceSession(userDataDir string) (tabs int, err error) {
	const op = "profile.place_session"
	root, err := os.OpenRoot(userDataDir)
	if err != nil {
		return 0, fault.Wrap(err, fault.StoreFailed, op, "the profile's folder cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	last, raw, others, err := sessionFiles(root)
	for _, name := range others {
		if err == nil {
			err = root.RemoveAll(name)
		}
	}
	to := path.Join(Default, SessionGate)
	switch {
	case err != nil || last == to:
	case last != "":
		err = root.Rename(last, to)
	default:
		if err = root.MkdirAll(path.Dir(to), 0o700); err == nil {
			err = root.WriteFile(to, []byte(noTabs), 0o600)
		}
	}
	return countTabs(raw), fault.Wrap(err, fault.StoreFailed, op, "the session files could not be prepared")
}

// sessionFiles returns the session file that Chrome would restore, with its content, and
// the others. That is the newest complete one (FindLastSessionFile,
// command_storage_backend.cc).
func sessionFiles(root *os.Root) (last string, content []byte, others []string, err error) {
	folder := path.Join(Default, path.Dir(SessionGate))
	entries, err := fs.ReadDir(root.FS(), folder)
	if err != nil {
		return "", nil, nil, ignoreMissing(err)
	}
	for _, e := range slices.Backward(entries) { // names end with a time of fixed length
		name := path.Join(folder, e.Name())
		if !strings.HasPrefix(e.Name(), "Session_") {
			continue
		}
		if raw, err := readSession(root, name); last == "" && err == nil && complete(raw) {
			last, content = name, raw
			continue
		}
		others = append(others, name)
	}
	return last, content, others, nil
}

// Commands of session files (session_service_commands.cc, command_storage_backend.cc).
const (
	setTabWindow = 0  // window, tab
	tabClosed    = 16 // tab
	windowClosed = 17 // window
	// initialStateMarker follows the state with which a file begins.
	initialStateMarker = 255
)

// commands yields the kind and the content of each command of a session file, until the
// first one that is not whole.
func commands(raw []byte) iter.Seq2[byte, []byte] {
	return func(yield func(byte, []byte) bool) {
		for at := 8; at+3 <= len(raw); {
			size := int(binary.LittleEndian.Uint16(raw[at:]))
			at += 2
			if size == 0 || at+size > len(raw) || !yield(raw[at], raw[at+1:at+size]) {
				return
			}
			at += size
		}
	}
}

// complete reports whether Chrome wrote all of the state with which a session file begins.
// In files of version 1 it is not known.
func complete(raw []byte) bool {
	if binary.LittleEndian.Uint32(raw[len(snssMagic):]) == 1 {
		return true
	}
	for command := range commands(raw) {
		if command == initialStateMarker {
			return true
		}
	}
	return false
}

// countTabs counts the open tabs of a session file that have an address.
func countTabs(raw []byte) int {
	windowOf, loaded := map[uint32]uint32{}, map[uint32]bool{}
	for command, content := range commands(raw) {
		if len(content) < 8 {
			continue
		}
		first, second := binary.LittleEndian.Uint32(content), binary.LittleEndian.Uint32(content[4:])
		switch command {
		case setTabWindow:
			windowOf[second] = first
		case navigationOpen: // a pickle: its size, then the tab
			loaded[second] = true
		case tabClosed:
			delete(windowOf, first)
		case windowClosed:
			maps.DeleteFunc(windowOf, func(_, window uint32) bool { return window == first })
		}
	}
	maps.DeleteFunc(loaded, func(tab uint32, _ bool) bool { _, open := windowOf[tab]; return !open })
	return len(loaded)
}
