package profile_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/browser/profile"
)

func words(values ...uint32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func blob(b string) []byte {
	out := append(words(uint32(len(b))), b...)
	return append(out, make([]byte, -len(out)&3)...)
}

func pickled(parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(words(uint32(len(body))), body...)
}

// navigation returns a command that sets a tab's entry. Its page state has the given
// version and lists the given number of files.
func navigation(kind byte, version, files uint32) []byte {
	raw := string(words(24, 0, 16, 0, 0, 0, 8+8*files, files)) + string(make([]byte, 8*files))
	state := pickled(words(version), blob(raw))
	content := pickled(words(7, 0), blob("https://a.test/"), words(1), []byte{'t', 0, 0, 0}, blob(string(state)), words(0, 0))
	return append(append(binary.LittleEndian.AppendUint16(nil, uint16(len(content)+1)), kind), content...)
}

// A restored page may read the files that its page state lists. So no page state that
// lists files reaches Chrome; the others are unchanged.
func TestPrepareDropsFormFiles(t *testing.T) {
	head := append([]byte("SNSS"), words(3)...)
	const hidden = 1<<31 - 1
	file := func(kind byte, versions ...uint32) string {
		out := bytes.Clone(head)
		for i, files := range []uint32{0, 1, 0} {
			out = append(out, navigation(kind, versions[i], files)...)
		}
		return string(append(out, 9, 0, 1)) // and a truncated command
	}
	root := t.TempDir()
	put(t, root, "Default/Sessions/Session_1", file(6, 33, 33, 20))
	put(t, root, "Default/Sessions/Tabs_1", file(1, 33, 33, 20))
	put(t, root, "Default/Sessions/Session_2", "SNSS\x05\x00\x00\x00v10")
	put(t, root, "Default/Sessions/Session_3", "x")
	put(t, root, "Default/Sessions_Encrypted/Session_1", "SNSS\x05\x00\x00\x00v10")
	if _, err := (profile.Prepare{RestoreTabs: true}).Run(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Session_1": file(6, 33, hidden, hidden), "Tabs_1": file(1, 33, hidden, hidden)} {
		got, err := os.ReadFile(filepath.Join(root, "Default/Sessions", name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %q\nwant %q", name, err, got, want)
		}
	}
	for _, name := range []string{"Sessions/Session_2", "Sessions/Session_3", "Sessions_Encrypted"} {
		if _, err := os.Lstat(filepath.Join(root, "Default", name)); !os.IsNotExist(err) {
			t.Errorf("%s was not removed: %v", name, err)
		}
	}
}
