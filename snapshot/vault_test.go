package snapshot_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var place = snapshot.Location{
	Owner: "0123456789abcdef0123456789abcdef", Session: "s-1", Scope: "agent", ScopeID: "browser",
}

func id(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012x", n) }

var start = time.Date(2027, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

func newIdentity(t testing.TB) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func vaultOf(store snapshot.Store, keys snapshot.Keys) *snapshot.Vault {
	return snapshot.NewVault(store, keys, snapshot.Options{Now: func() time.Time { return start }})
}

func newVault(t testing.TB) (*snapshot.Vault, *memstore.Store) {
	t.Helper()
	store := memstore.New(0, time.Now)
	return vaultOf(store, snapshot.NewKeys(newIdentity(t), [32]byte{1})), store
}

func save(t testing.TB, v *snapshot.Vault, d snapshot.Draft) snapshot.Snapshot {
	t.Helper()
	s, err := v.Save(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func draft(n int, entries ...snapshot.Entry) snapshot.Draft {
	return snapshot.Draft{
		ID: id(n), Location: place, Mode: snapshot.Filesystem, CreatedAt: start, Entries: entries,
		Facts:   map[string]any{"chrome": "156.0.8078.79", "cookies": 3.0},
		Private: json.RawMessage(`{"origins":["https://bank.example"]}`),
		AppData: json.RawMessage(`{"notes":["call the bank"]}`),
	}
}

// profile writes a small tree like a closed profile's and lists it.
func profile(t testing.TB) (entries []snapshot.Entry, contents map[string]string) {
	t.Helper()
	dir := t.TempDir()
	contents = map[string]string{
		"Default/Preferences": `{"session":{}}`, "Default/Network/Cookies": strings.Repeat("cookie", 9000),
		"Default/empty": "", "Default/ünï code " + strings.Repeat("x", 120): "long", "Default/script": "#!",
	}
	entries = append(entries, snapshot.Entry{Name: "Default/empty folder", Mode: fs.ModeDir})
	for name, content := range contents {
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o640)
		if name == "Default/script" {
			mode = 0o755
		}
		entries = append(entries, snapshot.Entry{Name: name, Path: path, Mode: mode})
	}
	entries = append(entries, snapshot.Entry{Name: "state.json", Data: []byte(`{"schema_version":"1"}`)})
	return entries, contents
}

// tree reads files below dir, folders as "/".
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if d.IsDir() {
			got[name] = "/"
			return nil
		}
		body, err := os.ReadFile(path)
		got[name] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What was saved comes back: document, private part, files, modes, times.
func TestRoundTrip(t *testing.T) {
	v, _ := newVault(t)
	entries, contents := profile(t)
	saved := save(t, v, draft(1, entries...))
	opened, err := v.Open(t.Context(), place, id(1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved, opened); diff != "" {
		t.Errorf("Open is not what Save returned (-saved +opened):\n%s", diff)
	}
	if !opened.CreatedAt.Equal(start) || opened.Facts["cookies"] != 3.0 || !strings.Contains(string(opened.Private), "bank") || string(opened.AppData) != `{"notes":["call the bank"]}` {
		t.Errorf("opened %+v", opened)
	}
	dst := filepath.Join(t.TempDir(), "new")
	got, err := v.Unpack(t.Context(), opened, dst, snapshot.UnpackOptions{Keep: []string{"state.json"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Default": "/", "Default/Network": "/", "Default/empty folder": "/"}
	maps.Copy(want, contents)
	if diff := cmp.Diff(want, tree(t, dst)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if string(got.Kept["state.json"]) != `{"schema_version":"1"}` || got.Entries != len(entries) || len(got.Refused) > 0 {
		t.Errorf("unpacked %+v", got)
	}
	for name, mode := range map[string]fs.FileMode{
		"": fs.ModeDir | 0o700, "Default": fs.ModeDir | 0o700, "Default/script": 0o700, "Default/Preferences": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dst, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%q has mode %v, want %v (%v)", name, info.Mode(), mode, err)
		}
	}
	var was time.Time
	for _, e := range entries {
		if e.Name == "Default/Preferences" {
			info, err := os.Stat(e.Path)
			if err != nil {
				t.Fatal(err)
			}
			was = info.ModTime()
		}
	}
	if info, err := os.Stat(filepath.Join(dst, "Default/Preferences")); err != nil || info.ModTime().Unix()-was.Unix() > 1 || was.Unix()-info.ModTime().Unix() > 1 {
		t.Errorf("time %v, want about %v (%v)", info.ModTime(), was, err)
	}
	if err := v.Verify(t.Context(), opened); err != nil {
		t.Errorf("Verify: %v", err)
	}
}

// Accept leaves out, and an owner is given everything that is made.
func TestUnpackAcceptAndOwner(t *testing.T) {
	v, _ := newVault(t)
	s := save(t, v, draft(1, snapshot.Entry{Name: "NativeMessagingHosts/x.json", Data: []byte("evil")},
		snapshot.Entry{Name: "Default/a", Data: []byte("a")}))
	dst := filepath.Join(t.TempDir(), "new")
	got, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{
		Accept: func(name string) bool { return !strings.HasPrefix(name, "Native") },
		Owner:  &snapshot.Owner{UID: os.Getuid(), GID: os.Getgid()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"NativeMessagingHosts/x.json"}, got.Refused); diff != "" || got.Entries != 1 || got.Bytes != 1 {
		t.Errorf("unpacked %+v", got)
	}
	if diff := cmp.Diff(map[string]string{"Default": "/", "Default/a": "a"}, tree(t, dst)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// The sealed file is plain age around plain tar.zst: stock tools recover it.
func TestStockFormat(t *testing.T) {
	identity := newIdentity(t)
	store := memstore.New(0, time.Now)
	v := vaultOf(store, snapshot.NewKeys(identity, [32]byte{}))
	s := save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("hello")}))
	key, err := snapshot.ArchiveKey(s.Archive.ID)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := store.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := age.Decrypt(sealed, identity)
	if err != nil {
		t.Fatal(err)
	}
	zr, err := zstd.NewReader(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer zr.Close()
	tr := tar.NewReader(zr)
	header, err := tr.Next()
	if err != nil || header.Name != "a" || header.Uid != 0 || header.Uname != "" {
		t.Fatalf("header %+v, %v", header, err)
	}
	if body, err := io.ReadAll(tr); err != nil || string(body) != "hello" {
		t.Errorf("body %q, %v", body, err)
	}
}

// OpenArchive streams the unsealed tar.zst.
func TestOpenArchive(t *testing.T) {
	v, _ := newVault(t)
	s := save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("hello")}))
	r, err := v.OpenArchive(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil || !bytes.HasPrefix(body, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Saves to one location at once all come to stand, and latest is one of them.
func TestConcurrentSaves(t *testing.T) {
	v, _ := newVault(t)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			// Half of them save equal contents.
			if _, err := v.Save(t.Context(), draft(n, snapshot.Entry{Name: "a", Data: fmt.Append(nil, n%4)})); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ids, next, err := v.List(t.Context(), place, 5, "")
	if err != nil || len(ids) != 5 || next != id(4) {
		t.Fatalf("first page %q, %q, %v", ids, next, err)
	}
	rest, next, err := v.List(t.Context(), place, 5, next)
	if err != nil || len(rest) != 3 || next != "" {
		t.Fatalf("second page %q, %q, %v", rest, next, err)
	}
	latest, err := v.Latest(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, one := range append(ids, rest...) {
		s, err := v.Open(t.Context(), place, one)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(t.Context(), s); err != nil {
			t.Error(err)
		}
		found = found || one == latest.ID
	}
	if !found {
		t.Errorf("latest is %s", latest.ID)
	}
}

// Equal contents of one owner are stored once, and stay while one snapshot
// uses them; another owner's have another name.
func TestEqualArchives(t *testing.T) {
	v, store := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	a, b := save(t, v, draft(1, entry)), save(t, v, draft(2, entry))
	if a.Archive != b.Archive {
		t.Errorf("archives differ: %+v, %+v", a.Archive, b.Archive)
	}
	foreign := draft(3, entry)
	foreign.Location.Owner = strings.Repeat("f", 32)
	if c := save(t, v, foreign); c.Archive.ID == a.Archive.ID {
		t.Error("two owners' archives have one name")
	}
	count := func() int {
		names, err := store.List(t.Context(), snapshot.ArchiveFolder(), 10, "")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if n := count(); n != 2 {
		t.Errorf("%d archives, want 2", n)
	}
	// The catalogue may not know the second yet: its archive must stay.
	if err := v.Delete(t.Context(), place, a.ID, true); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context(), b); err != nil {
		t.Errorf("the other snapshot lost its archive: %v", err)
	}
	if err := v.Delete(t.Context(), place, b.ID, true); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1 {
		t.Errorf("%d archives, want the foreign one", n)
	}
	if err := v.Delete(t.Context(), place, b.ID, true); !fault.Is(err, fault.SnapshotNotFound) {
		t.Errorf("a second delete: %v", err)
	}
}

// A save that is taken back leaves an archive that was there before it.
func TestTakenBack(t *testing.T) {
	v, _ := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	a, b := save(t, v, draft(1, entry)), save(t, v, draft(2, entry))
	if a.Shared || !b.Shared {
		t.Fatalf("shared: first %v, second %v", a.Shared, b.Shared)
	}
	if err := v.Delete(t.Context(), place, b.ID, !b.Shared); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context(), a); err != nil {
		t.Errorf("the first snapshot: %v", err)
	}
}

// A save over an equal archive that has become damaged mends it.
func TestDamagedTwinIsReplaced(t *testing.T) {
	v, store := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	a := save(t, v, draft(1, entry))
	key, err := snapshot.ArchiveKey(a.Archive.ID)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, store, key, []byte("rubbish"))
	b := save(t, v, draft(2, entry))
	if err := v.Verify(t.Context(), b); err != nil {
		t.Errorf("the new snapshot: %v", err)
	}
	if err := v.Verify(t.Context(), a); !fault.Is(err, fault.ArchiveDamaged) {
		t.Errorf("the old snapshot: %v, want archive_damaged", err)
	}
}

// Latest moves back to the newest left, and goes with the last.
func TestDeleteMovesLatest(t *testing.T) {
	v, _ := newVault(t)
	for n := 1; n <= 3; n++ {
		save(t, v, draft(n, snapshot.Entry{Name: "a", Data: fmt.Append(nil, n)}))
	}
	for _, step := range []struct{ remove, latest int }{{2, 3}, {3, 1}} {
		if err := v.Delete(t.Context(), place, id(step.remove), true); err != nil {
			t.Fatal(err)
		}
		if s, err := v.Latest(t.Context(), place); err != nil || s.ID != id(step.latest) {
			t.Errorf("after %d latest is %q, %v", step.remove, s.ID, err)
		}
	}
	if err := v.Delete(t.Context(), place, id(1), true); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Latest(t.Context(), place); !fault.Is(err, fault.SnapshotNotFound) {
		t.Errorf("Latest of nothing: %v", err)
	}
}

// Another daemon's identity does not open it; the error names whom it is
// sealed to. No identity at all saves, and reads the plain part.
func TestIdentities(t *testing.T) {
	store := memstore.New(0, time.Now)
	right := newIdentity(t)
	keys := snapshot.NewKeys(right, [32]byte{1})
	entries := snapshot.Entry{Name: "a", Data: []byte("x")}
	blind := vaultOf(store, snapshot.NewKeys(nil, [32]byte{1}, right.Recipient()))
	s := save(t, blind, draft(1, entries))
	save(t, blind, draft(2, entries))
	if opened, err := blind.Open(t.Context(), place, id(1)); err != nil || opened.Private != nil || opened.AppData != nil || opened.Facts["chrome"] == nil {
		t.Errorf("without identities: %+v, %v", opened, err)
	}
	wrong := vaultOf(store, snapshot.NewKeys(newIdentity(t), [32]byte{1}))
	_, opened := wrong.Open(t.Context(), place, id(1))
	dst := filepath.Join(t.TempDir(), "new")
	_, unpacked := wrong.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{})
	for _, err := range []error{opened, unpacked, blind.Verify(t.Context(), s)} {
		if !fault.Is(err, fault.IdentityMissing) || !strings.Contains(fault.MessageOf(err), right.Recipient().String()) {
			t.Errorf("got %v, want identity_missing naming the recipient", err)
		}
	}
	if _, err := os.Lstat(dst); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
	if err := vaultOf(store, keys).Verify(t.Context(), s); err != nil {
		t.Errorf("the right identity: %v", err)
	}
	if shown := fmt.Sprintf("%v %+v %#v", keys, keys, keys); strings.Contains(shown, "SECRET") {
		t.Error("keys print their secret")
	}
}

// Room is asked for before anything is touched.
func TestCheckRoom(t *testing.T) {
	v := snapshot.NewVault(memstore.New(1000, time.Now), snapshot.NewKeys(newIdentity(t), [32]byte{}), snapshot.Options{Reserve: 100})
	if err := v.CheckRoom(t.Context(), 900); err != nil {
		t.Error(err)
	}
	if err := v.CheckRoom(t.Context(), 901); !fault.Is(err, fault.StoreFull) {
		t.Errorf("got %v, want store_full", err)
	}
}

// What was saved and never committed is taken back, and latest with it.
func TestTakeBack(t *testing.T) {
	v, store := newVault(t)
	for n := range 3 {
		save(t, v, draft(n, snapshot.Entry{Name: "a", Data: fmt.Append(nil, n)}))
	}
	err := v.TakeBack(t.Context(), place, func(is string) (bool, error) { return is == id(1), nil })
	if err != nil {
		t.Fatal(err)
	}
	if ids, _, err := v.List(t.Context(), place, 0, ""); err != nil || !cmp.Equal(ids, []string{id(1)}) {
		t.Errorf("left: %q, %v", ids, err)
	}
	if s, err := v.Latest(t.Context(), place); err != nil || s.ID != id(1) {
		t.Errorf("latest is %q, %v", s.ID, err)
	}
	if names, err := store.List(t.Context(), snapshot.ArchiveFolder(), 9, ""); err != nil || len(names) != 3 {
		t.Errorf("archives: %q, %v; another may use them", names, err)
	}
}

// Latest does not come to name a snapshot whose delete died when its archive
// was gone and its document was not.
func TestLatestPassesOverTheHalfDeleted(t *testing.T) {
	v, store := newVault(t)
	var all []snapshot.Snapshot
	for n := range 3 {
		all = append(all, save(t, v, draft(n, snapshot.Entry{Name: "a", Data: fmt.Append(nil, n)})))
	}
	key, err := snapshot.ArchiveKey(all[1].Archive.ID)
	if err == nil {
		err = store.Delete(t.Context(), key)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Delete(t.Context(), place, id(2), true); err != nil {
		t.Fatal(err)
	}
	if s, err := v.Latest(t.Context(), place); err != nil || s.ID != id(0) {
		t.Errorf("latest is %q, %v", s.ID, err)
	}
}
