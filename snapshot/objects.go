package snapshot

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/stasisd/stasis/fault"
)

// objects reads and writes the small objects of a store: documents, latest and manifests.
type objects struct {
	store Store
	keys  Keys
}

func (o objects) openKey(ctx context.Context, key Key, loc Location, id string) (Snapshot, error) {
	body, err := o.read(ctx, key)
	if err != nil {
		return Snapshot{}, err
	}
	return o.parse(body, loc, id)
}

// parsePlain parses a document and checks everything that needs no identity: its form, its
// place and its MAC. It also checks that the archive's name follows from the owner and
// the tar's hash.
func (o objects) parsePlain(body []byte, loc Location, id string) (*document, error) {
	doc, err := parseDocument(body, loc, id)
	if err != nil {
		return nil, err
	}
	if !doc.checkMAC(o.keys, body) {
		return nil, damaged(doc.Data.SnapshotID, "its document was changed after it was written", nil)
	}
	return doc, o.keys.checkArchiveID(doc.snapshot())
}

// parse checks a whole document, including its sealed part.
func (o objects) parse(body []byte, loc Location, id string) (Snapshot, error) {
	doc, err := o.parsePlain(body, loc, id)
	if err != nil {
		return Snapshot{}, err
	}
	s := doc.snapshot()
	if len(o.keys.identities) > 0 {
		if s.Private, s.AppData, err = doc.unseal(o.keys); err != nil {
			return Snapshot{}, err
		}
	}
	return s, nil
}

// read returns a document's bytes, at most one more than a document may have.
func (o objects) read(ctx context.Context, key Key) ([]byte, error) {
	return readObject(ctx, o.store, key, maxDocument)
}

// checkManifest returns unsupported if a newer version keeps its snapshots in the
// location, because versions must not be mixed there. It ignores a damaged manifest,
// because the save writes a new one.
func (o objects) checkManifest(ctx context.Context, key Key) error {
	body, err := o.readOld(ctx, key)
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

// overwrites is the number of attempts to overwrite an object while other processes write
// it too. For each lost attempt another process has succeeded.
const overwrites = 20

// overwrite writes over an object, and never over a write that it has not read. undo is
// never nil. It restores the old object, also after an error, while the object still
// holds body.
func (o objects) overwrite(ctx context.Context, key Key, body []byte) (undo func(context.Context) error, err error) {
	undo = func(context.Context) error { return nil }
	for range overwrites {
		old, err := o.readReplaceable(ctx, key)
		if err != nil {
			return undo, err
		}
		undo = func(ctx context.Context) error { return o.restore(ctx, key, body, old) }
		done := false
		if old == nil {
			done, err = o.store.Create(ctx, key, body)
		} else {
			done, err = o.store.Swap(ctx, key, old, body)
		}
		if done || err != nil {
			return undo, err
		}
	}
	return undo, fault.New(fault.StoreFailed, "snapshot.save", "too many other processes write to the same location; try again")
}

// readOld reads an object; it returns nil if the object is missing.
func (o objects) readOld(ctx context.Context, key Key) ([]byte, error) {
	body, err := o.read(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return nil, nil
	}
	return body, err
}

// readReplaceable is readOld for an object that is to be overwritten. Swap needs the
// whole old object, and one larger than any document is not read whole. So
// readReplaceable deletes such an object.
func (o objects) readReplaceable(ctx context.Context, key Key) ([]byte, error) {
	body, err := o.readOld(ctx, key)
	if err == nil && len(body) > maxDocument {
		return nil, o.store.Delete(ctx, key)
	}
	return body, err
}

// restore sets an object back to old (nil: absent) if it holds written.
func (o objects) restore(ctx context.Context, key Key, written, old []byte) error {
	now, err := o.readOld(ctx, key)
	switch {
	case err != nil:
		return err
	case now == nil || !bytes.Equal(now, written):
		return nil
	case old == nil:
		return o.store.Delete(ctx, key)
	}
	_, err = o.store.Swap(ctx, key, written, old) // if not swapped, another process has replaced it
	return err
}

// write writes body over old. If old is nil, it creates the object.
func (o objects) write(ctx context.Context, key Key, old, body []byte) error {
	var done bool
	var err error
	if old == nil {
		done, err = o.store.Create(ctx, key, body)
	} else {
		done, err = o.store.Swap(ctx, key, old, body)
	}
	if err == nil && !done {
		err = fault.New(fault.StoreFailed, "snapshot.repair", "another process writes to the same location; try again")
	}
	return err
}
