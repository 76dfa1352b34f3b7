package backup_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/backup"
)

// A manifest that is accepted names only files below the backup.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format":"stasis-backup","format_version":1,"files":[{"path":"stasis.db","size":1,"sha256":"` + strings.Repeat("0", 64) + `"}]}`))
	f.Add([]byte(`{"format":"stasis-backup","format_version":2}`))
	f.Add([]byte(`{"format":"stasis-backup","format_version":1,"files":[{"path":"keys/../../x","size":-1,"sha256":""}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := backup.Parse(bytes.NewReader(raw))
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(file.Path) || file.Size < 0 {
				t.Errorf("accepted: %+v", file)
			}
		}
	})
}

// Whatever a file contains, a restore puts it in place completely or leaves nothing, and
// never writes outside its directory.
func FuzzRestore(f *testing.F) {
	raw, err := os.ReadFile(filepath.Join("testdata", "v1.tar.zst"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		around := t.TempDir()
		source, dir := filepath.Join(around, "b.tar.zst"), filepath.Join(around, "data")
		if err := os.WriteFile(source, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := backup.Verify(t.Context(), source) // a restore begins with it, but also syncs the disk
		if err == nil {
			_, err = backup.Restore(t.Context(), source, "", dir)
		}
		left, rerr := os.ReadDir(dir)
		if rerr != nil {
			t.Fatal(rerr)
		}
		if err != nil && len(left) > 0 {
			t.Errorf("after %v the directory contains %v", err, left)
		}
		if beside, _ := os.ReadDir(around); len(beside) != 2 {
			t.Errorf("beside the directory: %v", beside)
		}
	})
}
