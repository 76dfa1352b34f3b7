package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
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
	manifest, e4 := newManifest(v.opts.Now())
	if err := errors.Join(e1, e2, e3, e4); err != nil {
		return true, err
	}
	unlock, err := v.locks.lock(ctx, d.Location.folder())
	if err != nil {
		return true, err
	}
	defer unlock()

	if err := v.checkManifest(ctx, manifestKey); err != nil {
		return true, err
	}
	nothing := func(context.Context) error { return nil }
	undoManifest, undoLatest := nothing, nothing
	created, err := v.store.Create(ctx, document, body)
	if err == nil && !created {
		return true, fault.New(fault.SaveFailed, "snapshot.save", "the snapshot ID %s is taken", d.ID)
	}
	if err == nil {
		undoManifest, err = v.overwrite(ctx, manifestKey, manifest)
	}
	if err == nil {
		undoLatest, err = v.overwrite(ctx, latest, body)
	}
	if err == nil {
		return false, nil
	}
	// A call that failed may have been done all the same, so each object is
	// looked at. latest comes first: while it may name the snapshot, the
	// snapshot has to stay whole.
	ctx = context.WithoutCancel(ctx)
	undone := undoLatest(ctx)
	if undone == nil {
		undone = v.restore(ctx, document, body, nil)
	}
	if undone == nil {
		// A manifest that stays behind is harmless: it names no snapshot.
		_ = undoManifest(ctx)
	}
	return undone == nil, errors.Join(err, undone)
}

// checkManifest is unsupported where a newer version keeps its snapshots: they
// are not to be mixed with ours. A manifest that is damaged is no hindrance; the
// save writes another.
func (v *Vault) checkManifest(ctx context.Context, key Key) error {
	body, err := v.readOld(ctx, key)
	if err != nil {
		return err
	}
	var m manifest
	if json.Unmarshal(body, &m) == nil && m.SchemaVersion != SchemaVersion {
		return fault.New(fault.Unsupported, "snapshot.save",
			"the location's manifest has schemaVersion %.20q; this version writes %q", m.SchemaVersion, SchemaVersion)
	}
	return nil
}

// overwrites is how often an object is tried to be written over while other
// processes write it too; each lost try is another's won one.
const overwrites = 20

// overwrite writes an object over what is there, and never over a write that
// it has not seen. undo, which is never nil, puts back what was there, also
// after an error, while the object still holds body.
func (v *Vault) overwrite(ctx context.Context, key Key, body []byte) (undo func(context.Context) error, err error) {
	undo = func(context.Context) error { return nil }
	for range overwrites {
		old, err := v.readReplaceable(ctx, key)
		if err != nil {
			return undo, err
		}
		undo = func(ctx context.Context) error { return v.restore(ctx, key, body, old) }
		done := false
		if old == nil {
			done, err = v.store.Create(ctx, key, body)
		} else {
			done, err = v.store.Swap(ctx, key, old, body)
		}
		if done || err != nil {
			return undo, err
		}
	}
	return undo, fault.New(fault.StoreFailed, "snapshot.save", "too many others write the same location; try again")
}

// readOld reads an object that may be missing, then nil.
func (v *Vault) readOld(ctx context.Context, key Key) ([]byte, error) {
	body, err := v.read(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return nil, nil
	}
	return body, err
}

// readReplaceable is readOld for an object that is written over. One that is larger
// than any document is not read whole, so nothing could take its place: it goes.
func (v *Vault) readReplaceable(ctx context.Context, key Key) ([]byte, error) {
	body, err := v.readOld(ctx, key)
	if err == nil && len(body) > maxDocument {
		return nil, v.store.Delete(ctx, key)
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
	_, err = v.store.Swap(ctx, key, written, old) // not swapped: another's stands there by now
	return err
}
