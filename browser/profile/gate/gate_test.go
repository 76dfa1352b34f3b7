package gate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
)

const localStorageDB = "Local Storage/leveldb"

// write creates a file below a folder.
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

// prepared returns an empty profile with gates, and a filled profile of an environment
// that waits.
func prepared(t *testing.T) (profile, waiting string) {
	t.Helper()
	profile, waiting = filepath.Join(t.TempDir(), "Default"), filepath.Join(t.TempDir(), "Default")
	if err := Shell().Create(profile); err != nil {
		t.Fatal(err)
	}
	write(t, profile, localStorageDB+"/LOCK", "")
	write(t, waiting, "Cookies", "jar")
	write(t, waiting, localStorageDB+"/CURRENT", "MANIFEST-000007\n")
	write(t, waiting, localStorageDB+"/MANIFEST-000007", "list")
	write(t, waiting, "Local Storage/other", "o")
	write(t, waiting, "Service Worker/ScriptCache/x", "script")
	if err := Shell().Fill(waiting); err != nil {
		t.Fatal(err)
	}
	return profile, waiting
}

// A reader at a gate gets the environment's CURRENT once all files are in place. Later
// readers find it there as a file.
func TestOpen(t *testing.T) {
	profile, waiting := prepared(t)
	got := make(chan string, 1)
	go func() {
		file, err := os.Open(filepath.Join(profile, localStorageDB, "CURRENT"))
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
	if _, err := Shell().Open(profile, waiting); err != nil {
		t.Fatal(err)
	}
	if body := <-got; body != "MANIFEST-000007\n" {
		t.Errorf("the waiting reader got %q", body)
	}
	for name, want := range map[string]string{
		"Cookies": "jar", localStorageDB + "/CURRENT": "MANIFEST-000007\n", localStorageDB + "/MANIFEST-000007": "list", "Local Storage/other": "o",
		"Service Worker/ScriptCache/x": "script", "Service Worker/Database/CURRENT": "MANIFEST-000001\n", "PersistentOriginTrials/CURRENT": "MANIFEST-000001\n",
	} {
		if body := read(t, profile, name); body != want {
			t.Errorf("%s: %q", name, body)
		}
	}
	if _, err := os.Stat(filepath.Join(profile, localStorageDB, "LOCK")); err != nil {
		t.Errorf("the shell's lock file: %v", err)
	}
}

// Open never replaces what the shell has created, and fails if a gate is missing, because
// the shell then has created its own database.
func TestOpenRefuses(t *testing.T) {
	for name, spoil := range map[string]func(profile, waiting string) error{
		"a file that it has": func(profile, _ string) error {
			return os.WriteFile(filepath.Join(profile, "Cookies"), []byte("own"), 0o600)
		},
		"a file of its database": func(profile, _ string) error {
			return os.WriteFile(filepath.Join(profile, localStorageDB, "MANIFEST-000007"), nil, 0o600)
		},
		"no gate": func(profile, _ string) error { return os.Remove(filepath.Join(profile, localStorageDB, "CURRENT")) },
		"its own database": func(profile, _ string) error {
			gate := filepath.Join(profile, "PersistentOriginTrials/CURRENT")
			if err := os.Remove(gate); err != nil {
				return err
			}
			return os.WriteFile(gate, []byte("MANIFEST-000001\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			profile, waiting := prepared(t)
			if err := spoil(profile, waiting); err != nil {
				t.Fatal(err)
			}
			if _, err := Shell().Open(profile, waiting); !fault.Is(err, fault.BrowserFailed) || !errors.Is(err, ErrConflict) {
				t.Errorf("%v", err)
			}
		})
	}
}

// An environment whose file does not fit into a pipe is found before it enters.
func TestTooLarge(t *testing.T) {
	waiting := t.TempDir()
	write(t, waiting, "Bookmarks", strings.Repeat("b", maxFile))
	write(t, waiting, "Sessions/Tabs_1", strings.Repeat("s", maxFile+1))
	if name := Chrome().TooLarge(waiting); name != "" {
		t.Errorf("%s fits", name)
	}
	write(t, waiting, "Sessions/Session_1", strings.Repeat("s", maxFile+1))
	if name := Chrome().TooLarge(waiting); name != "Sessions/Session_1" {
		t.Errorf("found %q", name)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	if err := growPipe(w, maxFile); err != nil {
		t.Error(err)
	}
	if n, err := w.WriteString(strings.Repeat("s", maxFile)); n != maxFile || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// A gated database that is not valid is replaced by an empty one.
func TestFill(t *testing.T) {
	waiting := filepath.Join(t.TempDir(), "Default")
	write(t, waiting, localStorageDB+"/000003.log", "left over")
	write(t, waiting, "Service Worker", "a file where a folder is to be")
	if err := Shell().Fill(waiting); err != nil {
		t.Fatal(err)
	}
	for _, db := range Shell().databases {
		if got := read(t, waiting, db, "CURRENT"); got != "MANIFEST-000001\n" {
			t.Errorf("%s: %q", db, got)
		}
	}
	if _, err := os.Stat(filepath.Join(waiting, localStorageDB, "000003.log")); err == nil {
		t.Error("the empty database contains files of the old one")
	}
}
