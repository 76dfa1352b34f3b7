package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// An archive that is cut, has a flipped bit or has extra bytes is archive_damaged, and
// the error names the snapshot. This holds at every position and for every method that
// reads it. The folder stays unchanged.
func TestDamagedArchive(t *testing.T) {
	v, store := newVault(t)
	random := rand.NewChaCha8([32]byte{})
	noise := make([]byte, 150_000) // more than two chunks of age
	if _, err := random.Read(noise); err != nil {
		t.Fatal(err)
	}
	s := save(t, v, draft(1, snapshot.Entry{Name: "d/a", Data: noise}, snapshot.Entry{Name: "d/b", Data: []byte("b")}))
	key, err := snapshot.ArchiveKey(s.Archive.ID)
	key, good := stored(t, store, key, err)

	bad := map[string][]byte{"empty": {}, "longer": append(bytes.Clone(good), 0), "twice": append(bytes.Clone(good), good...)}
	for at := range 260 { // every position in the header, the nonce and the first bytes
		bad[fmt.Sprintf("flip %d", at)] = flip(good, at)
	}
	for i := range 60 {
		at := i * len(good) / 60
		bad[fmt.Sprintf("cut %d", at)] = good[:at]
		bad[fmt.Sprintf("flip %d", at)] = flip(good, at)
	}
	for at := len(good) - 20; at < len(good); at++ {
		bad[fmt.Sprintf("cut %d", at)] = good[:at]
		bad[fmt.Sprintf("flip %d", at)] = flip(good, at)
	}
	dst := t.TempDir()
	if err := os.WriteFile(filepath.Join(dst, "mine"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dst)
	for name, body := range bad {
		storetest.Put(t, store, key, body)
		_, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{})
		if !fault.Is(err, fault.ArchiveDamaged) || !strings.Contains(fault.MessageOf(err), s.ID) {
			t.Errorf("%s: Unpack: %v, want archive_damaged naming the snapshot", name, err)
		}
		if diff := cmp.Diff(before, tree(t, dst)); diff != "" {
			t.Fatalf("%s: the folder changed (-before +after):\n%s", name, diff)
		}
		if err := v.Verify(t.Context(), s); !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: Verify: %v", name, err)
		}
		if err := readAll(t, v, s); !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: OpenArchive: %v", name, err)
		}
	}
	if err := store.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dst, "fresh")
	if _, err := v.Unpack(t.Context(), s, fresh, snapshot.UnpackOptions{}); !fault.Is(err, fault.ArchiveDamaged) {
		t.Errorf("missing: %v", err)
	}
	if _, err := os.Lstat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was left: %v", err)
	}
	storetest.Put(t, store, key, good)
	if _, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{}); err != nil {
		t.Errorf("the good archive: %v", err)
	}
}

func readAll(t *testing.T, v *snapshot.Vault, s snapshot.Snapshot) error {
	t.Helper()
	r, err := v.OpenArchive(t.Context(), s)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

func flip(body []byte, at int) []byte {
	body = bytes.Clone(body)
	body[at] ^= 1 << (at % 8)
	return body
}
