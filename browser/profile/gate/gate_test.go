package gate

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/fault"
)

const mine = "Local Storage/leveldb"

// write makes a file below a folder.
func write(t *testing.T, folder, name, body string) {
	t.Helper()
	file := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// laid is an empty profile with gates, and an environment's that waits, filled.
func laid(t *testing.T) (profile, waiting string) {
	t.Helper()
	profile, waiting = filepath.Join(t.TempDir(), "Default"), filepath.Join(t.TempDir(), "Default")
	if err := Lay(profile); err != nil {
		t.Fatal(err)
	}
	write(t, profile, mine+"/LOCK", "")
	write(t, waiting, "Cookies", "jar")
	write(t, waiting, mine+"/CURRENT", "MANIFEST-000007\n")
	write(t, waiting, mine+"/MANIFEST-000007", "list")
	write(t, waiting, "Local Storage/other", "o")
	write(t, waiting, "Service Worker/ScriptCache/x", "script")
	if err := Fill(waiting); err != nil {
		t.Fatal(err)
	}
	return profile, waiting
}

// Whoever waits at a gate reads the environment's list of files, once all is in
// its place, and finds it there from then on; so does who comes later.
func TestOpen(t *testing.T) {
	profile, waiting := laid(t)
	got := make(chan string, 1)
	go func() {
		file, err := os.Open(filepath.Join(profile, mine, "CURRENT"))
		if err != nil {
			got <- err.Error()
			return
		}
		defer func() { _ = file.Close() }()
		body, err := io.ReadAll(file)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- string(body)
	}()
	if err := Open(profile, waiting); err != nil {
		t.Fatal(err)
	}
	if body := <-got; body != "MANIFEST-000007\n" {
		t.Errorf("who waited has read %q", body)
	}
	for name, want := range map[string]string{
		"Cookies": "jar", mine + "/CURRENT": "MANIFEST-000007\n", mine + "/MANIFEST-000007": "list", "Local Storage/other": "o",
		"Service Worker/ScriptCache/x": "script", "Service Worker/Database/CURRENT": "MANIFEST-000001\n", "PersistentOriginTrials/CURRENT": "MANIFEST-000001\n",
	} {
		if body := read(t, profile, name); body != want {
			t.Errorf("%s: %q", name, body)
		}
	}
	if _, err := os.Stat(filepath.Join(profile, mine, "LOCK")); err != nil {
		t.Errorf("the lock that the shell holds: %v", err)
	}
}

// What the shell has made already is never replaced, and a gate that is gone is
// told: the shell began a database of its own.
func TestOpenRefuses(t *testing.T) {
	for name, spoil := range map[string]func(profile, waiting string) error{
		"a file that it has": func(profile, _ string) error {
			return os.WriteFile(filepath.Join(profile, "Cookies"), []byte("own"), 0o600)
		},
		"a file of its database": func(profile, _ string) error {
			return os.WriteFile(filepath.Join(profile, mine, "MANIFEST-000007"), nil, 0o600)
		},
		"no gate": func(profile, _ string) error { return os.Remove(filepath.Join(profile, mine, "CURRENT")) },
		"its own database": func(profile, _ string) error {
			gate := filepath.Join(profile, "PersistentOriginTrials/CURRENT")
			if err := os.Remove(gate); err != nil {
				return err
			}
			return os.WriteFile(gate, []byte("MANIFEST-000001\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			profile, waiting := laid(t)
			if err := spoil(profile, waiting); err != nil {
				t.Fatal(err)
			}
			if err := Open(profile, waiting); !fault.Is(err, fault.BrowserFailed) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What is no database is an empty one.
func TestFill(t *testing.T) {
	waiting := filepath.Join(t.TempDir(), "Default")
	write(t, waiting, mine+"/000003.log", "left over")
	write(t, waiting, "Service Worker", "a file where a folder is to be")
	if err := Fill(waiting); err != nil {
		t.Fatal(err)
	}
	for _, db := range gated {
		if got := read(t, waiting, db, "CURRENT"); got != "MANIFEST-000001\n" {
			t.Errorf("%s: %q", db, got)
		}
	}
	if _, err := os.Stat(filepath.Join(waiting, mine, "000003.log")); err == nil {
		t.Error("the rest of a database is in the empty one")
	}
}
