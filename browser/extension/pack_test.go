package extension_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/browser/extension"
)

// pack packs a folder.
func pack(t *testing.T, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := extension.Pack(t.Context(), dir, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What is packed unpacks to the same extension. Its bytes depend on the files alone.
func TestPack(t *testing.T) {
	for name, entries := range map[string][]entry{
		"without a key": {{name: "manifest.json", body: goodManifest}, {name: "a/b.js", body: "1"}, {name: "ü/é.txt", body: ""}},
		"with a key":    {{name: "a.js", body: "1"}, {name: "manifest.json", body: `{"manifest_version": 3, "name": "Probe", "version": "1.2", "key": "AAAA"}`}},
		"in a folder":   {{name: "x/manifest.json", body: "\xef\xbb\xbf" + goodManifest}, {name: "x/b/", mode: os.ModeDir | 0o755}, {name: "__MACOSX/x", body: "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			want, dir, err := write(t, zipOf(t, entries...))
			if err != nil {
				t.Fatal(err)
			}
			// What Chrome and the clock change does not matter.
			if err := os.MkdirAll(filepath.Join(dir, "_metadata", "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			raw := pack(t, dir)
			got, again, err := write(t, raw)
			if err != nil || got != want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, want)
			}
			if !bytes.Equal(pack(t, again), raw) {
				t.Error("the same files are packed to other bytes")
			}
		})
	}
}
