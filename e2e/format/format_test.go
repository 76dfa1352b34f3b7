// Package format_test reads Stasis's snapshots with a program in another language, which
// was written from docs/format.md alone.
package format_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
)

const golden = "../../snapshot/testdata/golden"

// read runs the reader on one snapshot of a data directory.
func read(t *testing.T, dir string, loc snapshot.Location, id string) (map[string]any, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "reader.mjs", dir, loc.Owner, loc.Session, loc.Scope, loc.ScopeID, id)
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		return nil, &failure{err, says.String()}
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got, nil
}

type failure struct {
	err  error
	says string
}

func (f *failure) Error() string { return f.err.Error() + "\n" + f.says }

// The format document is enough to read snapshots of both versions of the format.
func TestGolden(t *testing.T) {
	for _, name := range []string{"v1", "v1-mac", "v1.1"} {
		t.Run(name, func(t *testing.T) { readGolden(t, filepath.Join(golden, name)) })
	}
}

func readGolden(t *testing.T, dir string) {
	raw, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	if err := json.Unmarshal(raw, &all); err != nil || len(all) == 0 {
		t.Fatalf("%d golden snapshots, error %v", len(all), err)
	}
	for _, want := range all {
		text := func(name string) string { return want[name].(string) }
		loc := snapshot.Location{Owner: text("owner"), Session: text("session"), Scope: text("scope"), ScopeID: text("scope_id")}
		got, err := read(t, dir, loc, text("id"))
		if err != nil {
			t.Fatal(err)
		}
		for _, entries := range []any{want["entries"], got["entries"]} { // the entries after a head begin with the first name again
			slices.SortFunc(entries.([]any), func(a, b any) int {
				return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
			})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs (-saved +read):\n%s", text("id"), diff)
		}
	}
}

// The reader reads a snapshot of today's code, and detects a changed byte.
func TestToday(t *testing.T) {
	dir := t.TempDir()
	keys, err := snapshot.LoadKeys(snapshot.KeyConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	store, err := fsstore.Open(filepath.Join(dir, "snapshots"), fsstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	saved, err := snapshot.NewVault(store, keys, snapshot.Options{Now: time.Now}).Save(t.Context(), snapshot.Draft{
		ID: "01900000-0000-7000-8000-000000000001", Mode: snapshot.Memory, CreatedAt: time.Now(),
		Location: snapshot.Location{Owner: strings.Repeat("0a", 16), Session: "s-1", Scope: "agent", ScopeID: "browser"},
		Entries: []snapshot.Entry{
			{Name: "Default", Mode: fs.ModeDir}, {Name: "Default/é", Data: []byte("content")},
			{Name: "state.json", Data: []byte(`{"schema_version":"1"}`)},
		},
		Facts: map[string]any{"cookies": 1}, Private: []byte(`{"user_id":"alice"}`), AppData: []byte(`{"notes":{"session_id":"s"}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, dir, saved.Location, "latest")
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := got["entries"].([]any); got["id"] != saved.ID || len(entries) != 3 || got["private"].(map[string]any)["user_id"] != "alice" ||
		got["app_data"].(map[string]any)["notes"].(map[string]any)["session_id"] != "s" {
		t.Errorf("the reader printed %v", got)
	}
	key, err := snapshot.ArchiveKey(saved.Archive.ID)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "snapshots", key.String())
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	body[len(body)-1] ^= 1
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, dir, saved.Location, "latest"); err == nil || !strings.Contains(err.Error(), "the payload is not the one that was saved") {
		t.Errorf("reading a changed archive: error %v", err)
	}
}
