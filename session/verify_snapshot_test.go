package session

import (
	"crypto/sha256"
	"io"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
)

// change replaces the bytes of an object in the store.
func (r *rig) change(key snapshot.Key, change func([]byte) []byte) {
	r.t.Helper()
	ctx := r.t.Context()
	content, err := r.store.Open(ctx, key)
	if err != nil {
		r.t.Fatal(err)
	}
	body, err := io.ReadAll(content)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := content.Close(); err != nil {
		r.t.Fatal(err)
	}
	body = change(body)
	up, err := r.store.Upload(ctx)
	if err == nil {
		_, err = up.Write(body)
	}
	if err == nil {
		err = up.Replace(ctx, key, snapshot.Sum{Size: int64(len(body)), SHA256: sha256.Sum256(body)})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// A verification checks everything down to the tar, and reports what is wrong and how far
// it came. An obstacle, such as a failing store, is an error.
func TestVerifySnapshot(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	_, snap := r.saved(alice, filesystem)
	row, err := r.catalogue.Snapshot(ctx, snap)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := snapshot.ArchiveKey(row.ArchiveID)
	if err != nil {
		t.Fatal(err)
	}
	document, err := library.LocationOf(row.UserID, row.SessionID).DocumentKey(snap)
	if err != nil {
		t.Fatal(err)
	}
	verify := func() library.VerifyResult {
		t.Helper()
		found, err := r.library.VerifySnapshot(ctx, alice, snap)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	flip := func(body []byte) []byte { body[len(body)-1] ^= 1; return body }

	whole := verify()
	if c := whole.Checked; !whole.OK || len(whole.Problems) != 0 || !c.Document || !c.Archive || !c.State ||
		c.Entries == 0 || c.TarBytes == 0 || c.StoredBytes != row.SizeBytes {
		t.Errorf("undamaged: %+v", whole)
	}
	r.change(archive, flip)
	if got := verify(); got.OK || got.Checked != (library.VerifyChecks{Document: true}) || len(got.Problems) != 1 || got.Problems[0].Code != fault.ArchiveDamaged {
		t.Errorf("one bit of the archive changed: %+v", got)
	}
	r.change(archive, flip)
	var original []byte
	r.change(document, func(body []byte) []byte { original = body; return body[:len(body)/2] })
	if got := verify(); got.OK || got.Checked != (library.VerifyChecks{}) || len(got.Problems) != 1 || got.Problems[0].Code != fault.ArchiveDamaged {
		t.Errorf("half of the document: %+v", got)
	}
	if err := r.store.Delete(ctx, document); err != nil {
		t.Fatal(err)
	}
	if got := verify(); got.OK || len(got.Problems) != 1 || got.Problems[0].Code != fault.ArchiveDamaged || got.Checked != (library.VerifyChecks{}) {
		t.Errorf("no document: %+v", got)
	}
	if _, err := r.store.Create(ctx, document, original); err != nil {
		t.Fatal(err)
	}
	if got := verify(); !got.OK {
		t.Errorf("repaired: %+v", got)
	}

	_, err = r.library.VerifySnapshot(ctx, bob, snap)
	wantCode(t, err, fault.SnapshotNotFound)
	r.store.FailAt(1, faultstore.Refuse, fault.New(fault.StoreFailed, "test", "on purpose"))
	_, err = r.library.VerifySnapshot(ctx, alice, snap)
	wantCode(t, err, fault.StoreFailed)
}
