package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// ParseDocument is parseDocument, for the fuzz test.
func ParseDocument(body []byte, loc Location, id string) (Snapshot, error) {
	doc, err := parseDocument(body, loc, id)
	if err != nil {
		return Snapshot{}, err
	}
	return doc.snapshot(), nil
}

// Plant stores a tar that no Save would write, sealed and with everything that
// a document binds in order, and returns its snapshot.
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
	if _, err := v.overwrite(context.WithoutCancel(t.Context()), key, sealed.Bytes()); err != nil {
		t.Fatal(err)
	}
	return Snapshot{ID: id, Location: loc, Mode: Filesystem, Archive: a, Recipients: v.keys.Recipients()}
}
