package snapshot_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// Open and Unpack return what was saved: document, private part, files, modes, times.
func TestRoundTrip(t *testing.T) {
	v, _ := newVault(t)
	entries, contents := profile(t)
	saved := save(t, v, draft(1, entries...))
	opened, err := v.Open(t.Context(), place, id(1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved, opened); diff != "" {
		t.Errorf("Open differs from Save (-saved +opened):\n%s", diff)
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

// Accept leaves out entries, and everything that is created gets the given owner.
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

// The identity of another daemon does not open a snapshot, and the error names the
// recipients. Without an identity, a vault can save and read the plain part.
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
		t.Errorf("the folder was created: %v", err)
	}
	if err := vaultOf(store, keys).Verify(t.Context(), s); err != nil {
		t.Errorf("the right identity: %v", err)
	}
	if shown := fmt.Sprintf("%v %+v %#v", keys, keys, keys); strings.Contains(shown, "SECRET") {
		t.Error("keys print their secret")
	}
}

// CheckSpace checks for space before anything changes.
func TestCheckSpace(t *testing.T) {
	v := snapshot.NewVault(memstore.New(1000, time.Now), snapshot.NewKeys(newIdentity(t), [32]byte{}), snapshot.Options{Reserve: 100})
	if err := v.CheckSpace(t.Context(), 900); err != nil {
		t.Error(err)
	}
	if err := v.CheckSpace(t.Context(), 901); !fault.Is(err, fault.StoreFull) {
		t.Errorf("got %v, want store_full", err)
	}
}
