package snapshot

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// InUse reports whether the catalogue has a snapshot with the archive. If it fails, the
// archive stays.
type InUse func(ctx context.Context, archiveID string) (bool, error)

// Delete removes a snapshot's document. It also removes the archive, unless another
// snapshot shares it: an uncommitted snapshot of this process, one that inUse reports, or one
// of another process that [Options.Uses] knows.
// If inUse is nil, the archive stays. inUse is called while no save can adopt the
// archive, so a caller must not replace it by an earlier look at the catalogue. If the
// location's latest was this snapshot, the newest remaining snapshot becomes latest.
//
// A missing snapshot is snapshot_not_found. A damaged document is removed but its archive
// stays, because the document's archive ID cannot be trusted. A document of a newer
// version is unsupported and stays. A failed delete can be repeated.
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
	doc, err := v.objects.parsePlain(body, loc, id)
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
			if inUse != nil { // otherwise the reservation says later what may be removed
				v.release(ctx, doc.Data.Archive.ID, id)
			}
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
	// The archive is deleted before the document. If the process dies in between, the
	// delete can be repeated and still finds both.
	if archive != (Key{}) {
		if err := v.removeArchive(ctx, archive, doc.Data.Archive.ID, id); err != nil {
			return err
		}
	}
	return v.store.Delete(ctx, key)
}

// moveLatest makes latest name the newest snapshot other than id. If there is none, it
// deletes latest and the manifest. It also replaces a damaged latest, but not one of a
// newer version.
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
	doc, bad := v.objects.parsePlain(body, loc, "")
	if bad == nil && doc.Data.SnapshotID != id || fault.Is(bad, fault.Unsupported) {
		return nil
	}
	newest, err := v.newestExcept(ctx, loc, id)
	if err != nil {
		return err
	}
	if newest != nil {
		_, err = v.store.Swap(ctx, latest, body, newest) // if not swapped, another process's save has moved latest
		return err
	}
	manifest, err := loc.ManifestKey()
	if err != nil {
		return err
	}
	if err := errors.Join(v.store.Delete(ctx, latest), v.store.Delete(ctx, manifest)); err != nil {
		return err
	}
	return v.recreateLatest(ctx, loc, id, latest, manifest)
}

// recreateLatest writes latest and manifest again after a race with another process. If
// that process saved a snapshot after the location was checked, the deleted latest and
// manifest were its own. A save writes its document first, so the document is visible
// now.
func (v *Vault) recreateLatest(ctx context.Context, loc Location, id string, latest, manifest Key) error {
	newest, err := v.newestExcept(ctx, loc, id)
	if err != nil || newest == nil {
		return err
	}
	body, err := newManifest(v.opts.Now())
	if err == nil {
		_, err = v.store.Create(ctx, manifest, body) // if not created, the manifest exists again
	}
	if err == nil {
		_, err = v.store.Create(ctx, latest, newest)
	}
	return err
}

// newestExcept returns the valid document with the greatest ID other than id whose archive
// exists, or nil.
func (v *Vault) newestExcept(ctx context.Context, loc Location, id string) ([]byte, error) {
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
		if err = v.checkRestorable(ctx, body, loc, all[i]); err == nil {
			return body, nil
		}
		if !fault.Is(err, fault.ArchiveDamaged) {
			return nil, err
		}
	}
	return nil, nil
}

// checkRestorable checks that a document is valid and that its archive exists. A delete
// that died half-way has removed the archive only.
func (v *Vault) checkRestorable(ctx context.Context, body []byte, loc Location, id string) error {
	doc, err := v.objects.parsePlain(body, loc, id)
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

// RemoveUncommitted removes a location's documents that were never committed to the
// catalogue. A process that died between a save and its commit leaves such documents, and
// the location's latest may name one. Archives stay, because another snapshot may share
// them.
func (v *Vault) RemoveUncommitted(ctx context.Context, loc Location, committed func(id string) (bool, error)) error {
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

// MarkCommitted records that the catalogue has a snapshot that Save returned. From then
// on the catalogue, not the vault, protects its archive. It must be called for each saved
// snapshot, unless the snapshot is deleted.
func (v *Vault) MarkCommitted(s Snapshot) { v.sharing.unshare(s.Archive.ID, s.ID) }
