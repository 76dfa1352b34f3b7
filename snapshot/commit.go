package snapshot

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// commitDocument writes the immutable document, then the manifest, and latest last. If a
// step fails, it restores all three. clean reports that this succeeded, so that nothing
// names the archive any more.
func (v *Vault) commitDocument(ctx context.Context, d Draft, body []byte) (clean bool, err error) {
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

	if err := v.objects.checkManifest(ctx, manifestKey); err != nil {
		return true, err
	}
	nothing := func(context.Context) error { return nil }
	undoManifest, undoLatest := nothing, nothing
	created, err := v.store.Create(ctx, document, body)
	if err == nil && !created {
		return true, fault.New(fault.SaveFailed, "snapshot.save", "the snapshot ID %s is already in use", d.ID)
	}
	if err == nil {
		undoManifest, err = v.objects.overwrite(ctx, manifestKey, manifest)
	}
	if err == nil {
		undoLatest, err = v.objects.overwrite(ctx, latest, body)
	}
	if err == nil {
		return false, nil
	}
	// A call that failed may still have taken effect, so each object is checked. latest
	// comes first: while it may name the snapshot, the snapshot must stay complete.
	ctx = context.WithoutCancel(ctx)
	undone := undoLatest(ctx)
	if undone == nil {
		undone = v.objects.restore(ctx, document, body, nil)
	}
	if undone == nil {
		// A manifest that remains is harmless, because it names no snapshot.
		_ = undoManifest(ctx)
	}
	return undone == nil, errors.Join(err, undone)
}
