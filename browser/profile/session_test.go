package profile_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile"
)

// sessionFile returns a session file with commands.
func sessionFile(version uint32, commands ...[]byte) string {
	return "SNSS" + string(words(version)) + string(bytes.Join(commands, nil))
}

// sessionCommand returns a command of a session file.
func sessionCommand(kind byte, content ...uint32) []byte {
	body := words(content...)
	return append(append(binary.LittleEndian.AppendUint16(nil, uint16(len(body)+1)), kind), body...)
}

// Chrome restores the newest session file that is complete, so that one gets the gate's
// name. The number of its tabs leaves out what was closed and what never loaded.
func TestPlaceSession(t *testing.T) {
	const window, tab = 0, 6
	marker := sessionCommand(255)
	two := sessionFile(3,
		sessionCommand(window, 1, 10), sessionCommand(tab, 100, 10, 0), sessionCommand(tab, 100, 10, 1),
		sessionCommand(window, 1, 11), sessionCommand(tab, 100, 11, 0),
		sessionCommand(window, 1, 12), sessionCommand(tab, 100, 12, 0), sessionCommand(16, 12, 0, 0),
		sessionCommand(window, 1, 13),
		sessionCommand(window, 2, 20), sessionCommand(tab, 100, 20, 0), sessionCommand(17, 2, 0, 0),
		marker, []byte{9})
	cut := sessionFile(3, sessionCommand(window, 1, 10), sessionCommand(tab, 100, 10, 0))
	old := sessionFile(1, sessionCommand(window, 1, 10), sessionCommand(tab, 100, 10, 0))
	for name, test := range map[string]struct {
		files map[string]string
		want  string
		tabs  int
	}{
		"two tabs":          {map[string]string{"Session_13440000000000001": two}, two, 2},
		"newest":            {map[string]string{"Session_13440000000000001": old, "Session_13440000000000002": two}, two, 2},
		"newest incomplete": {map[string]string{"Session_13440000000000001": two, "Session_13440000000000002": cut}, two, 2},
		"old version":       {map[string]string{"Session_13440000000000002": old}, old, 1},
		"has the name":      {map[string]string{"Session_13000000000000000": two}, two, 2},
		"not a file":        {map[string]string{"Session_13440000000000002": "x"}, "SNSS\x03\x00\x00\x00", 0},
		"none":              {nil, "SNSS\x03\x00\x00\x00", 0},
	} {
		root := t.TempDir()
		put(t, root, "Default/Sessions/Tabs_1", "closed")
		for file, body := range test.files {
			put(t, root, "Default/Sessions/"+file, body)
		}
		tabs, err := profile.PlaceSession(root)
		if err != nil || tabs != test.tabs {
			t.Errorf("%s: %d tabs, %v", name, tabs, err)
		}
		if body, err := os.ReadFile(filepath.Join(root, "Default", profile.SessionGate)); err != nil || string(body) != test.want {
			t.Errorf("%s: %q, %v", name, body, err)
		}
		left, err := filepath.Glob(filepath.Join(root, "Default/Sessions/*"))
		want := []string{filepath.Join(root, "Default", profile.SessionGate), filepath.Join(root, "Default/Sessions/Tabs_1")}
		if diff := cmp.Diff(want, left); diff != "" || err != nil {
			t.Errorf("%s: (-want +got):\n%s%v", name, diff, err)
		}
	}
}

// No session file makes PlaceSession fail.
func FuzzPlaceSession(f *testing.F) {
	f.Add([]byte(sessionFile(3, sessionCommand(0, 1, 10), sessionCommand(6, 100, 10, 0), sessionCommand(255))))
	f.Add([]byte(sessionFile(1, []byte{3, 0, 6})))
	f.Fuzz(func(t *testing.T, body []byte) {
		root := t.TempDir()
		put(t, root, "Default/Sessions/Session_13440000000000001", string(body))
		if _, err := profile.PlaceSession(root); err != nil {
			t.Error(err)
		}
	})
}
