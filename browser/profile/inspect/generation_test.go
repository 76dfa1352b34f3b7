package inspect

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A database continues if its list of files is the same or a later one. A database that
// was created again, is missing or never existed does not.
func TestGeneration(t *testing.T) {
	profile := t.TempDir()
	current := filepath.Join(profile, SessionStorage, "CURRENT")
	write := func(list string, at time.Time) Generation {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(current), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(current, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(current, at, at); err != nil {
			t.Fatal(err)
		}
		return GenerationOf(profile, SessionStorage)
	}
	then, later := time.Unix(1e9, 5), time.Unix(1e9, 6)
	if none := GenerationOf(profile, SessionStorage); none.Continues(none) {
		t.Error("a missing database continues")
	}
	first := write("MANIFEST-000001\n", then)
	for name, test := range map[string]struct {
		list string
		at   time.Time
		goes bool
	}{
		"unchanged":             {"MANIFEST-000001\n", then, true},
		"created again":         {"MANIFEST-000001\n", later, false},
		"its list was replaced": {"MANIFEST-000007\n", later, true},
		"nonsense":              {"../../etc/passwd\n", then, false},
	} {
		if got := write(test.list, test.at).Continues(first); got != test.goes {
			t.Errorf("%s: continues: %t", name, got)
		}
	}
	if seventh := write("MANIFEST-000007\n", then); write("MANIFEST-000001\n", later).Continues(seventh) {
		t.Error("a database that was created again continues")
	}
}
