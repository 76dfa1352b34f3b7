package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
)

// Save packs, verifies, seals and stores a draft and reads it back. Only then it writes
// the document and moves the location's latest. It returns the snapshot as Open would,
// with the draft's Private. After an error latest is unchanged and nothing of the draft
// remains. If the store refuses to remove it, what remains is complete.
//
// Errors: save_failed (an entry is missing, changed, or not a regular file),
// invalid_field, store_full, store_failed, timeout.
func (v *Vault) Save(ctx context.Context, d Draft) (Snapshot, error) {
	if _, err := d.Location.DocumentKey(d.ID); err != nil {
		return Snapshot{}, err
	}
	list, err := plan(d.Entries)
	if err != nil {
		return Snapshot{}, err
	}
	s, err := v.save(ctx, d, list)
	if err != nil {
		return Snapshot{}, saveFault(ctx, err)
	}
	return s, nil
}

// saveFault gives a code to an error that has none.
func saveFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.Wrap(err, fault.Timeout, "snapshot.save", "the save was cancelled; nothing was committed")
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(err, fault.SaveFailed, "snapshot.save", "")
}

func (v *Vault) save(ctx context.Context, d Draft, list []*packEntry) (s Snapshot, err error) {
	up, err := v.store.Upload(ctx)
	if err != nil {
		return s, err
	}
	// An upload that cannot be dropped is a temporary file, which the store removes when it
	// is next opened. It must not turn a committed snapshot into a failure.
	defer func() { _ = up.Abort() }()
	archive, sum, err := v.files.seal(ctx, up, d.Location.Owner, list)
	if err != nil {
		return s, err
	}
	key, created, unlock, err := v.storeArchive(ctx, up, d, &archive, sum)
	if err != nil {
		return s, err
	}
	defer unlock()
	body, err := newDocument(d, archive, v.keys)
	var doc *document
	if err == nil {
		doc, err = v.objects.parsePlain(body, d.Location, d.ID)
		err = fault.Wrap(err, fault.SaveFailed, "snapshot.save", "the new snapshot's document is not valid")
	}
	undone := true
	if err == nil {
		undone, err = v.commitDocument(ctx, d, body)
	}
	if err != nil {
		if undone {
			err = errors.Join(err, v.undoArchive(context.WithoutCancel(ctx), key, archive.ID, d.ID, created))
		}
		return s, err
	}
	v.sharing.share(archive.ID, d.ID)
	s = doc.snapshot()
	s.Private, s.AppData, s.Shared = d.Private, d.AppData, !created
	return s, nil
}

// seal streams the entries through pack and age into the upload.
func (f archiveFiles) seal(ctx context.Context, up io.Writer, owner string, list []*packEntry) (Archive, Sum, error) {
	payload := newPayloadSum()
	below := &stickyWriter{w: io.MultiWriter(up, payload), sum: sha256.New()}
	var packed contents
	err := f.keys.seal(below, func(w io.Writer) (err error) {
		packed, err = pack(ctx, w, list)
		return err
	})
	if below.err != nil {
		err = below.err
	}
	return Archive{
		ID:            f.keys.archiveID(owner, packed.SHA256),
		PayloadSHA256: payload.hex(), PayloadSize: payload.size, StoredSize: payload.stored,
		TarSHA256: hex.EncodeToString(packed.SHA256[:]), TarSize: packed.Size, Entries: packed.Entries,
		Head: newHead(packed.Head),
	}, below.Sum(), err
}

// commitArchive makes the upload visible and reads it back; created reports that it did.
// If an equal archive is already stored, it checks that archive and changes a to bind it.
// If that archive is damaged, the upload replaces it. Other snapshots do not gain from
// that, because they bind the old bytes. The caller holds the archive's lock.
//
// If other processes may use the archive, a damaged one stays and is archive_damaged, and
// undo removes what a failed commit may have stored.
func (f archiveFiles) commitArchive(ctx context.Context, up Upload, key Key, id string, a *Archive, sum Sum, undo func(context.Context) error) (created bool, err error) {
	created, err = up.Commit(ctx, key, sum)
	if err == nil && !created {
		if err = f.adopt(ctx, key, id, a); !fault.Is(err, fault.ArchiveDamaged) || undo != nil {
			return false, err
		}
		if err = f.store.Delete(ctx, key); err != nil {
			return false, err
		}
		created, err = up.Commit(ctx, key, sum)
	}
	if err == nil && !created {
		return false, fault.New(fault.StoreFailed, "snapshot.save", "another process stored the same archive at the same time; try again")
	}
	look := ctx
	if err != nil {
		look = context.WithoutCancel(ctx) // an upload that failed may still have taken effect
	}
	stored, readErr := f.payload(look, key)
	ours := readErr == nil && stored.hex() == a.PayloadSHA256 && stored.size == a.PayloadSize
	switch {
	case err == nil && ours:
		return true, nil
	case err == nil:
		if readErr == nil {
			readErr = errors.New("the payload that was read differs from the payload that was written")
		}
		err = fault.Wrap(readErr, fault.SaveFailed, "snapshot.save", "the archive in the store differs from what was written")
	case !ours: // the commit failed; an archive under the key is not from it
		return false, err
	}
	if undo == nil {
		undo = func(ctx context.Context) error { return f.store.Delete(ctx, key) }
	}
	return false, errors.Join(err, undo(context.WithoutCancel(ctx)))
}

// adopt checks a stored archive and makes a bind its payload. Without an identity it can
// read the archive, but not open it.
func (f archiveFiles) adopt(ctx context.Context, key Key, id string, a *Archive) (err error) {
	if len(f.keys.identities) == 0 {
		sum, err := f.payload(ctx, key)
		if err == nil {
			a.PayloadSHA256, a.PayloadSize, a.StoredSize = sum.hex(), sum.size, sum.stored
		}
		return err
	}
	r, err := f.unseal(ctx, key, id, f.keys.Recipients(), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := f.verify(ctx, r, *a); err != nil {
		return err
	}
	a.PayloadSHA256, a.PayloadSize = r.raw.sum.hex(), r.raw.sum.size
	// The archive may be older than a recipient.
	_, a.StoredSize, err = f.rewrapArchive(ctx, key, &Snapshot{ID: id, Archive: *a}, nil)
	return err
}
