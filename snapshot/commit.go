package snapshot

import (
	"bytes"
	"context"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// commitDocument writes the immutable document, the manifest, and last of all
// latest. When a step fails, all are put back as they were; gone reports that
// this succeeded, so that nothing names the archive any more.
func (v *Vault) commitDocument(ctx context.Context, d Draft, body []byte) (gone bool, err error) {
	document, e1 := d.Location.DocumentKey(d.ID)
	manifestKey, e2 := d.Location.ManifestKey()
	latest, e3 := d.Location.LatestKey()
	manifest, e4 := v.manifest()
	if err := errors.Join(e1, e2, e3, e4); err != nil {
		return true, err
	}
	defer v.locks.lock(d.Location.folder())()

	oldManifest, err := v.readOld(ctx, manifestKey)
	if err != nil {
		return true, err
	}
	oldLatest, err := v.readOld(ctx, latest)
	if err != nil {
		return true, err
	}
	created, err := v.store.Create(ctx, document, body)
	if err == nil && !created {
		return true, fault.New(fault.SaveFailed, "snapshot.save", "the snapshot ID %s is taken", d.ID)
	}
	if err == nil {
		err = v.store.Replace(ctx, manifestKey, manifest)
	}
	if err == nil {
		err = v.store.Replace(ctx, latest, body)
	}
	if err == nil {
		return false, nil
	}
	// A call that failed may have been done all the same, so each object is
	// looked at. latest comes first: while it may name the snapshot, the
	// snapshot has to stay whole.
	ctx = context.WithoutCancel(ctx)
	undone := v.restore(ctx, latest, body, oldLatest)
	if undone == nil {
		undone = v.restore(ctx, document, body, nil)
	}
	if undone == nil {
		// A manifest that stays behind is harmless: it names no snapshot.
		_ = v.restore(ctx, manifestKey, manifest, oldManifest)
	}
	return undone == nil, errors.Join(err, undone)
}

// readOld reads an object that may be missing, then nil.
func (v *Vault) readOld(ctx context.Context, key Key) ([]byte, error) {
	body, err := v.read(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return nil, nil
	}
	return body, err
}

// restore puts an object back to old (nil: absent) if it holds written.
func (v *Vault) restore(ctx context.Context, key Key, written, old []byte) error {
	now, err := v.readOld(ctx, key)
	switch {
	case err != nil:
		return err
	case now == nil || !bytes.Equal(now, written):
		return nil
	case old == nil:
		return v.store.Delete(ctx, key)
	}
	return v.store.Replace(ctx, key, old)
}
