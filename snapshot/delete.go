package snapshot

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// InUse reports whether the catalogue knows a snapshot with the archive. Where it
// cannot tell, the archive stays.
type InUse func(ctx context.Context, archiveID string) (bool, error)

// Delete removes a snapshot: its document, and its archive too unless another snapshot
// has the same: one of this process that is not settled, or one that inUse knows; nil
// leaves the archive. That is decided while no save can take the archive up, so a
// caller's earlier look at the catalogue would not do. If the location's latest
// was this one, the newest that is left takes its place. A missing snapshot is
// snapshot_not_found; a damaged document is removed, and its archive left,
// since nothing trustworthy names it; one of a newer version is unsupported and
// stays. A delete that failed can be repeated.
func (v *Vault) Delete(ctx context.Context, loc Location, id string, inUse InUse) error {
	key, err := loc.DocumentKey(id)
	if err != nil {
		return err
	}
	body, err := v.objects.read(ctx, key)
	if err != nil {
		return err
	}
	archive := Key{}
	doc, err := v.objects.bound(body, loc, id)
	if fault.Is(err, fault.Unsupported) {
		return err
	}
	if err == nil {
		if archive, err = ArchiveKey(doc.Data.Archive.ID); err != nil {
			return err
		}
		unlock, err := v.locks.lock(ctx, archive.String())
		if err != nil {
			return err
		}
		defer unlock()
		if v.sharing.needs(ctx, doc.Data.Archive.ID, id, inUse) {
			archive = Key{}
		}
	}
	unlock, err := v.locks.lock(ctx, loc.folder())
	if err != nil {
		return err
	}
	defer unlock()
	if err := v.moveLatest(ctx, loc, id); err != nil {
		return err
	}
	// The archive goes before the document, so that a delete that dies in
	// between can be repeated and forgets neither.
	if archive != (Key{}) {
		if err := v.store.Delete(ctx, archive); err != nil {
			return err
		}
	}
	return v.store.Delete(ctx, key)
}

// moveLatest makes latest name another snapshot than id: the newest left, or
// none, and then the manifest goes too. A damaged latest is replaced as well; one
// of a newer version is left.
func (v *Vault) moveLatest(ctx context.Context, loc Location, id string) error {
	latest, err := loc.LatestKey()
	if err != nil {
		return err
	}
	body, err := v.objects.readOld(ctx, latest)
	if err != nil {
		return err
	}
	if body == nil {
		return nil
	}
	doc, bad := v.objects.bound(body, loc, "")
	if bad == nil && doc.Data.SnapshotID != id || fault.Is(bad, fault.Unsupported) {
		return nil
	}
	newest, err := v.newestBut(ctx, loc, id)
	if err != nil {
		return err
	}
	if newest != nil {
		_, err = v.store.Swap(ctx, latest, body, newest) // not swapped: another's save moved it meanwhile
		return err
	}
	manifest, err := loc.ManifestKey()
	if err != nil {
		return err
	}
	if err := errors.Join(v.store.Delete(ctx, latest), v.store.Delete(ctx, manifest)); err != nil {
		return err
	}
	return v.giveBack(ctx, loc, id, latest, manifest)
}

// giveBack makes latest and manifest again where another process saved after the
// location was looked at, and what was deleted was its. Its document came first, so
// it is seen now.
func (v *Vault) giveBack(ctx context.Context, loc Location, id string, latest, manifest Key) error {
	newest, err := v.newestBut(ctx, loc, id)
	if err != nil || newest == nil {
		return err
	}
	body, err := newManifest(v.opts.Now())
	if err == nil {
		_, err = v.store.Create(ctx, manifest, body) // not created: there is one again
	}
	if err == nil {
		_, err = v.store.Create(ctx, latest, newest)
	}
	return err
}

// newestBut returns the sound document with the greatest ID but id that has its
// archive; nil when there is none.
func (v *Vault) newestBut(ctx context.Context, loc Location, id string) ([]byte, error) {
	var all []string
	for after := ""; ; {
		page, next, err := v.List(ctx, loc, 1000, after)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == "" {
			break
		}
		after = next
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i] == id {
			continue
		}
		key, err := loc.DocumentKey(all[i])
		if err != nil {
			return nil, err
		}
		body, err := v.objects.readOld(ctx, key)
		if err != nil {
			return nil, err
		}
		if err = v.stands(ctx, body, loc, all[i]); err == nil {
			return body, nil
		}
		if !fault.Is(err, fault.ArchiveDamaged) {
			return nil, err
		}
	}
	return nil, nil
}

// stands reports whether a document is sound and its archive is there, which a
// delete that died half-way has removed.
func (v *Vault) stands(ctx context.Context, body []byte, loc Location, id string) error {
	doc, err := v.objects.bound(body, loc, id)
	if err != nil {
		return err
	}
	archive, err := ArchiveKey(doc.Data.Archive.ID)
	if err != nil {
		return err
	}
	if _, err = v.store.Stat(ctx, archive); fault.Is(err, fault.SnapshotNotFound) {
		return damaged(id, "its archive is missing", err)
	}
	return err
}

// TakeBack removes the documents of a location that were never committed: a
// process that died between a save and its commit left them, and the location's
// latest may name one. Archives stay, for an equal one may be another's.
func (v *Vault) TakeBack(ctx context.Context, loc Location, committed func(id string) (bool, error)) error {
	for after := ""; ; {
		page, next, err := v.List(ctx, loc, 1000, after)
		if err != nil {
			return err
		}
		for _, id := range page {
			is, err := committed(id)
			if err == nil && !is {
				err = v.Delete(ctx, loc, id, nil)
			}
			if err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

// Settled says that the catalogue knows a snapshot that Save returned: from here on
// the catalogue, and not the vault, tells that its archive is needed. It must be called
// for each saved snapshot, unless that is deleted.
func (v *Vault) Settled(s Snapshot) { v.sharing.unshare(s.Archive.ID, s.ID) }
