package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// ParseDocument is parseDocument, for the fuzz test. again is the parsed document,
// encoded again.
func ParseDocument(body []byte, loc Location, id string, keys Keys) (s Snapshot, again []byte, err error) {
	doc, err := parseDocument(body, loc, id)
	if err != nil {
		return Snapshot{}, nil, err
	}
	again, err = doc.encode(keys)
	return doc.snapshot(), again, err
}

// Extract is extract, for the fuzz test. It counts the contents of a tar.zst.
func Extract(ctx context.Context, packed []byte, max int64) (entries int, size int64, err error) {
	got, err := extract(ctx, bytes.NewReader(packed), extraction{maxTar: max, entry: func(_ *tar.Header, body io.Reader) error {
		_, err := io.Copy(io.Discard, body)
		return err
	}})
	return got.Entries, got.Size, err
}

// RewrapHeader writes a new header for an age file, for the fuzz test. It returns the new
// file, or nil if nothing changes.
func (k Keys) RewrapHeader(file []byte) ([]byte, error) {
	head, rest, err := readHeader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	newHead, _, err := k.rewrapHeader(head, "id", nil, nil)
	if err != nil || newHead == nil {
		return nil, err
	}
	payload, err := io.ReadAll(rest)
	return append(newHead, payload...), err
}

// Plant stores a tar that Save would not write. The archive is sealed and matches
// everything that its document binds. It returns the archive's snapshot.
func (v *Vault) Plant(t testing.TB, loc Location, id string, tarBytes []byte, entries int) Snapshot {
	t.Helper()
	zw, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	compressed := zw.EncodeAll(tarBytes, nil)
	sum := sha256.Sum256(tarBytes)
	payload := newPayloadSum()
	var sealed bytes.Buffer
	err = v.keys.seal(io.MultiWriter(&sealed, payload), func(w io.Writer) error { _, err := w.Write(compressed); return err })
	if err != nil {
		t.Fatal(err)
	}
	a := Archive{
		ID: v.keys.archiveID(loc.Owner, sum), PayloadSHA256: payload.hex(), PayloadSize: payload.size,
		StoredSize: payload.stored, TarSHA256: hex.EncodeToString(sum[:]), TarSize: int64(len(tarBytes)), Entries: entries,
	}
	key, err := ArchiveKey(a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.objects.overwrite(context.WithoutCancel(t.Context()), key, sealed.Bytes()); err != nil {
		t.Fatal(err)
	}
	return Snapshot{ID: id, Location: loc, Mode: Filesystem, Archive: a, Recipients: v.keys.Recipients()}
}

// Sharing returns how many snapshots the vault remembers as users of an archive.
func (v *Vault) Sharing() int {
	v.sharing.mu.Lock()
	defer v.sharing.mu.Unlock()
	n := 0
	for _, snapshots := range v.sharing.snapshots {
		n += len(snapshots)
	}
	return n
}

// Lock holds the lock of a location until unlock is called.
func (v *Vault) Lock(ctx context.Context, loc Location) (unlock func(), err error) {
	return v.locks.lock(ctx, loc.folder())
}

// LockArchive holds the lock of an archive until unlock is called.
func (v *Vault) LockArchive(ctx context.Context, key Key) (unlock func(), err error) {
	return v.locks.lock(ctx, key.String())
}

// Locks returns how many locks are held, and whether a call waits for one.
func (v *Vault) Locks() (held int, waited bool) {
	v.locks.mu.Lock()
	defer v.locks.mu.Unlock()
	for _, n := range v.locks.names {
		waited = waited || n.users > 1
	}
	return len(v.locks.names), waited
}
