package snapshot

import (
	"bytes"
	"context"

	"github.com/stasisd/stasis/fault"
)

// Repair rebuilds latest and manifest from the location's history. latest becomes a copy
// of the newest document that can be restored, unless it already copies a document that
// can be restored. The manifest is rewritten if it is missing or damaged. A latest that
// is the only copy of its document is first put back into the history. readData makes
// Repair read archives before it trusts them, as CheckOptions.ReadData does.
//
// Repair deletes no document and no archive, and leaves what a newer version wrote. It is
// idempotent. It does not touch an agent's location.
func (v *Vault) Repair(ctx context.Context, loc Location, readData bool) error {
	if loc.ScopeID != environments {
		return nil
	}
	key, err := loc.LatestKey()
	if err != nil {
		return err
	}
	unlock, err := v.locks.lock(ctx, loc.folder())
	if err != nil {
		return err
	}
	defer unlock()
	latest, err := v.objects.readOld(ctx, key)
	if err != nil {
		return err
	}
	named := ""
	if latest != nil {
		doc, err := v.objects.parsePlain(latest, loc, "")
		if fault.Is(err, fault.Unsupported) {
			return nil
		}
		if err == nil {
			named = doc.Data.SnapshotID
			if err := v.restoreDocument(ctx, loc, named, latest); err != nil {
				return err
			}
		}
	}
	newest, err := v.newestRestorable(ctx, loc, named, latest, readData)
	if err != nil {
		return err
	}
	if newest != nil && !bytes.Equal(newest, latest) {
		if err := v.objects.write(ctx, key, latest, newest); err != nil {
			return err
		}
	}
	if newest == nil && latest == nil {
		return nil
	}
	return v.repairManifest(ctx, loc)
}

// restoreDocument writes latest's document into the history if it is missing or damaged
// there.
func (v *Vault) restoreDocument(ctx context.Context, loc Location, id string, body []byte) error {
	key, err := loc.DocumentKey(id)
	if err != nil {
		return err
	}
	there, err := v.objects.readOld(ctx, key)
	if err != nil {
		return err
	}
	if there != nil {
		if _, err := v.objects.parsePlain(there, loc, id); !fault.Is(err, fault.ArchiveDamaged) {
			return nil // valid, or of a newer version
		}
	}
	return v.objects.write(ctx, key, there, body)
}

// newestRestorable returns the document for latest. It prefers the document that latest
// names, if latest copies it and it can be restored. Otherwise it returns the newest
// document that can be restored, or nil.
func (v *Vault) newestRestorable(ctx context.Context, loc Location, named string, latest []byte, readData bool) ([]byte, error) {
	folder, err := loc.HistoryFolder()
	if err != nil {
		return nil, err
	}
	var ids []string
	for name, err := range names(ctx, v.store, folder) {
		if err != nil {
			return nil, err
		}
		if id, ok := loc.documentID(name); ok {
			ids = append(ids, id)
		}
	}
	if named != "" {
		body, err := v.restorable(ctx, loc, named, readData)
		if err != nil || bytes.Equal(body, latest) {
			return body, err
		}
	}
	for i := len(ids) - 1; i >= 0; i-- {
		if body, err := v.restorable(ctx, loc, ids[i], readData); err != nil || body != nil {
			return body, err
		}
	}
	return nil, nil
}

// restorable returns a snapshot's document if a check would find that it can be restored,
// else nil. An error is the store's.
func (v *Vault) restorable(ctx context.Context, loc Location, id string, readData bool) ([]byte, error) {
	key, err := loc.DocumentKey(id)
	if err != nil {
		return nil, err
	}
	body, err := v.objects.readOld(ctx, key)
	if err != nil || body == nil {
		return nil, err
	}
	damaged := false
	quiet := &checker{vault: v, o: CheckOptions{ReadData: readData}, named: map[digest]digest{}, second: true}
	l := newLocationCheck(quiet, loc, func(f Finding) error {
		if f.Kind == Unreadable {
			return fault.New(fault.StoreFailed, "snapshot.repair", "%s: %s", f.Key, f.What)
		}
		damaged = damaged || f.Kind != IdentityMissing
		return nil
	})
	if err := l.document(ctx, id); err != nil || damaged {
		return nil, err
	}
	return body, nil
}

// repairManifest writes a manifest if none can be read.
func (v *Vault) repairManifest(ctx context.Context, loc Location) error {
	key, err := loc.ManifestKey()
	if err != nil {
		return err
	}
	old, err := v.objects.readOld(ctx, key)
	if err != nil {
		return err
	}
	if old != nil {
		if err := checkManifest(old); err == nil || fault.Is(err, fault.Unsupported) {
			return nil // valid, or of a newer version
		}
	}
	body, err := newManifest(v.opts.Now())
	if err != nil {
		return err
	}
	return v.objects.write(ctx, key, old, body)
}

// DropArchive removes an archive that no document names, as [Vault.Check] found. The
// caller makes sure that no save runs meanwhile.
func (v *Vault) DropArchive(ctx context.Context, id string) error {
	key, err := ArchiveKey(id)
	if err != nil {
		return err
	}
	unlock, err := v.locks.lock(ctx, key.String())
	if err != nil {
		return err
	}
	defer unlock()
	return v.removeArchive(ctx, key, id, "")
}
