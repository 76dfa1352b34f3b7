package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Every later version reads all that an earlier one wrote.
func TestGolden(t *testing.T) {
	for name := range golden {
		t.Run(name, func(t *testing.T) { readGolden(t, name) })
	}
}

func readGolden(t *testing.T, name string) {
	dir, want := goldenDir(t, name)
	v := goldenVault(t, dir)
	for _, g := range want {
		s, err := v.Open(t.Context(), g.location(), g.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(goldenView(g), goldenView(goldenSnapshot{
			Owner: s.Location.Owner, Session: s.Location.Session, Scope: s.Location.Scope, ScopeID: s.Location.ScopeID,
			ID: s.ID, Mode: s.Mode, CreatedAt: s.CreatedAt, Recipients: s.Recipients, Archive: s.Archive.ID, Facts: s.Facts, Private: s.Private,
		})); diff != "" {
			t.Errorf("%s: the document (-saved +opened):\n%s", g.ID, diff)
		}
		if err := v.Verify(t.Context(), s); err != nil {
			t.Errorf("%s: Verify: %v", g.ID, err)
		}
		goldenFiles(t, v, s, g.Entries)
		goldenState(t, v, s)
	}
	goldenLocations(t, v, want)
}

// goldenView returns the snapshot without its files, and its sealed part as a value. The
// stored JSON lacks the spaces of expected.json.
func goldenView(g goldenSnapshot) map[string]any {
	var private any
	_ = json.Unmarshal(g.Private, &private) // nil if there is none
	return map[string]any{"location": g.location(), "id": g.ID, "mode": g.Mode, "created": g.CreatedAt.UTC(),
		"recipients": g.Recipients, "archive": g.Archive, "facts": g.Facts, "private": private}
}

// goldenFiles unpacks a snapshot and compares its files.
func goldenFiles(t *testing.T, v *snapshot.Vault, s snapshot.Snapshot, entries []goldenEntry) {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "out")
	got, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Entries != len(entries) || len(got.Refused) > 0 {
		t.Errorf("%s: unpacked %+v, want %d entries", s.ID, got, len(entries))
	}
	files := tree(t, dst)
	for _, want := range entries {
		info, err := os.Lstat(filepath.Join(dst, want.Name))
		if err != nil {
			t.Error(err)
			continue
		}
		is := goldenEntry{Name: want.Name, Mode: fmt.Sprintf("%04o", info.Mode().Perm()), Size: info.Size(), Time: want.Time}
		if want.Time != 0 {
			is.Time = info.ModTime().Unix()
		}
		if info.IsDir() {
			is.Mode, is.Size = "folder", 0
		} else {
			sum := sha256.Sum256([]byte(files[want.Name]))
			is.SHA256 = hex.EncodeToString(sum[:])
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("%s: a file (-saved +unpacked):\n%s", s.ID, diff)
		}
		delete(files, want.Name)
	}
	for name, content := range files {
		if content != "/" { // an archive may leave out folders that have contents
			t.Errorf("%s: %q was not saved", s.ID, name)
		}
	}
}

// goldenState reads the state document. This version must know each of its values under
// the same name.
func goldenState(t *testing.T, v *snapshot.Vault, s snapshot.Snapshot) {
	t.Helper()
	files, err := v.Peek(t.Context(), s, state.FileName)
	if err != nil {
		t.Fatal(err)
	}
	var doc state.Document
	if err := json.Unmarshal(files[state.FileName], &doc); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var saved, known any
	for raw, into := range map[string]*any{string(files[state.FileName]): &saved, string(again): &known} {
		if err := json.Unmarshal([]byte(raw), into); err != nil {
			t.Fatal(err)
		}
	}
	if lost := notIn(known, saved, ""); lost != "" {
		t.Errorf("%s: its state document has %s, which this version does not read", s.ID, lost)
	}
}

// notIn names a value of saved that known lacks, or returns "".
func notIn(known, saved any, at string) string {
	switch saved := saved.(type) {
	case map[string]any:
		has, _ := known.(map[string]any)
		for name, value := range saved {
			if lost := notIn(has[name], value, at+"."+name); lost != "" {
				return lost
			}
		}
		return ""
	case []any:
		has, _ := known.([]any)
		if len(has) != len(saved) {
			return at
		}
		for i, value := range saved {
			if lost := notIn(has[i], value, fmt.Sprintf("%s[%d]", at, i)); lost != "" {
				return lost
			}
		}
		return ""
	}
	if !reflect.DeepEqual(known, saved) {
		return at
	}
	return ""
}

// goldenLocations lists each location and opens its latest snapshot.
func goldenLocations(t *testing.T, v *snapshot.Vault, want []goldenSnapshot) {
	t.Helper()
	all := map[snapshot.Location][]string{}
	for _, g := range want {
		all[g.location()] = append(all[g.location()], g.ID)
	}
	for loc, ids := range all {
		got, next, err := v.List(t.Context(), loc, 0, "")
		if err != nil || next != "" || !cmp.Equal(ids, got) {
			t.Errorf("List of %+v: %q, %q, %v; want %q", loc, got, next, err, ids)
		}
		if s, err := v.Latest(t.Context(), loc); err != nil || s.ID != ids[len(ids)-1] {
			t.Errorf("Latest of %+v: %q, %v", loc, s.ID, err)
		}
	}
}

// The second of two recipients opens what was sealed to both. For the rest the error
// names the recipients.
func TestGoldenRecipients(t *testing.T) {
	for _, name := range []string{"v1", "v1-mac"} { // those that have two recipients
		t.Run(name, func(t *testing.T) { readWithRecovery(t, name) })
	}
}

func readWithRecovery(t *testing.T, name string) {
	dir, want := goldenDir(t, name)
	if err := os.Rename(filepath.Join(dir, "recovery-identity"), filepath.Join(dir, "identity")); err != nil {
		t.Fatal(err)
	}
	v := goldenVault(t, dir)
	opened := 0
	for _, g := range want {
		s, err := v.Open(t.Context(), g.location(), g.ID)
		if len(g.Recipients) == 1 {
			if !fault.Is(err, fault.IdentityMissing) {
				t.Errorf("%s: %v, want identity_missing", g.ID, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(t.Context(), s); err != nil {
			t.Errorf("%s: %v", g.ID, err)
		}
		opened++
	}
	if opened != 2 {
		t.Errorf("%d were opened, want 2", opened)
	}
}
