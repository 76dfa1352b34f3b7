package snapshot

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// Uses decides which process may use or remove an archive, if several save into one store. A
// catalogue that they share implements it; see ArchiveUseStore of package profiles.
//
// A removal that was sent to a store may take effect at any later time, if the process that
// sent it is stopped, or is cut off. So an archive whose removal has begun is never used
// again: an equal one gets another name.
type Uses interface {
	// ReserveArchive records that a snapshot that is being saved uses an archive, until the
	// catalogue has the snapshot. It returns false if a removal of the archive has begun.
	ReserveArchive(ctx context.Context, archiveID, snapshotID string) (bool, error)
	// ReleaseArchive removes a reservation.
	ReleaseArchive(ctx context.Context, archiveID, snapshotID string) error
	// BeginRemoval records that the archive is removed, and removes the reservation of a
	// snapshot ("": none). It returns false if another snapshot has or has reserved the
	// archive, or if another removal has begun.
	BeginRemoval(ctx context.Context, archiveID, snapshotID string) (bool, error)
	// EndRemoval records that the removal has taken effect.
	EndRemoval(ctx context.Context, archiveID string) error
}

// storeArchive commits the upload of a draft under the first of the archive's names that
// nobody removes. It returns with that name's lock held, unless it fails.
func (v *Vault) storeArchive(ctx context.Context, up Upload, d Draft, a *Archive, sum Sum) (key Key, created bool, unlock func(), err error) {
	contents := hashBytes(a.TarSHA256)
	for n := range byte(archiveNames) {
		a.ID = v.keys.archiveName(d.Location.Owner, contents, n)
		if key, err = ArchiveKey(a.ID); err != nil {
			return key, false, nil, err
		}
		if unlock, err = v.locks.lock(ctx, key.String()); err != nil {
			return key, false, nil, err
		}
		if v.uses == nil {
			created, err = v.files.commitArchive(ctx, up, key, d.ID, a, sum, nil)
		} else {
			created, err = v.commitReserved(ctx, up, key, d.ID, a, sum)
		}
		if err == nil {
			return key, created, unlock, nil
		}
		unlock()
		if v.uses == nil || !errors.Is(err, errUnusable) {
			return key, false, nil, err
		}
	}
	return key, false, nil, fault.Wrap(err, fault.StoreFailed, "snapshot.save", "every name of the archive is being removed or holds a damaged archive; run `stasis store check`")
}

// errUnusable: a name of an archive cannot be used.
var errUnusable = errors.New("the name of the archive cannot be used")

// commitReserved is [archiveFiles.commitArchive] after the archive was reserved. It returns
// errUnusable if the archive is being removed, or is damaged.
func (v *Vault) commitReserved(ctx context.Context, up Upload, key Key, id string, a *Archive, sum Sum) (created bool, err error) {
	reserved, err := v.uses.ReserveArchive(ctx, a.ID, id)
	if err != nil {
		return false, err
	}
	if !reserved {
		return false, errUnusable
	}
	fresh := *a
	removed := false
	created, err = v.files.commitArchive(ctx, up, key, id, a, sum, func(ctx context.Context) error {
		removed = true
		return v.removeArchive(ctx, key, a.ID, id)
	})
	if err != nil && !removed {
		v.release(context.WithoutCancel(ctx), a.ID, id)
	}
	if fault.Is(err, fault.ArchiveDamaged) {
		*a = fresh
		return false, errors.Join(errUnusable, err)
	}
	return created, err
}

// removeArchive removes an archive from the store, unless another process uses it. snapshotID
// no longer needs it; "" if none did. The caller holds the archive's lock.
func (v *Vault) removeArchive(ctx context.Context, key Key, archiveID, snapshotID string) error {
	if v.uses == nil {
		return v.store.Delete(ctx, key)
	}
	begun, err := v.uses.BeginRemoval(ctx, archiveID, snapshotID)
	if err != nil || !begun {
		return err
	}
	if err := v.store.Delete(ctx, key); err != nil {
		return err // it may still take effect, so the removal stays on record
	}
	return v.uses.EndRemoval(context.WithoutCancel(ctx), archiveID)
}

// undoArchive undoes storeArchive for a snapshot whose document could not be stored.
func (v *Vault) undoArchive(ctx context.Context, key Key, archiveID, snapshotID string, created bool) error {
	if !created {
		v.release(ctx, archiveID, snapshotID)
		return nil
	}
	return v.removeArchive(ctx, key, archiveID, snapshotID)
}

// release removes a reservation. If that fails, it ends with the node's lease: until then an
// archive is kept that nothing needs.
func (v *Vault) release(ctx context.Context, archiveID, snapshotID string) {
	if v.uses != nil {
		_ = v.uses.ReleaseArchive(ctx, archiveID, snapshotID)
	}
}

// RemoveUnused removes an archive that an earlier process may have left, unless a snapshot
// has it or one that is being saved uses it. It does nothing without [Options.Uses].
// snapshotID is the snapshot that was being saved, or "".
func (v *Vault) RemoveUnused(ctx context.Context, archiveID, snapshotID string) error {
	key, err := ArchiveKey(archiveID)
	if err != nil || v.uses == nil {
		return err
	}
	unlock, err := v.locks.lock(ctx, key.String())
	if err != nil {
		return err
	}
	defer unlock()
	return v.removeArchive(ctx, key, archiveID, snapshotID)
}
