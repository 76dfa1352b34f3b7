package snapshot_test

import (
	"archive/tar"
	"bytes"
	"io"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// The sealed file is plain age around plain tar.zst, so standard tools can recover it.
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
