package snapshot

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/stasisd/stasis/fault"
)

// objects are the small objects of a store: documents, latest ones and manifests.
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

// bound parses a document and checks all that needs no identity: its form, its
// place, its MAC, and that its archive's name follows from the owner and the
// tar's hash.
func (o objects) bound(body []byte, loc Location, id string) (*document, error) {
	doc, err := parseDocument(body, loc, id)
	if err != nil {
		return nil, err
	}
	if !doc.checkMAC(o.keys, body) {
		return nil, damaged(doc.Data.SnapshotID, "its document is not as it was written", nil)
	}
	return doc, o.keys.checkArchiveID(doc.snapshot())
}

// parse checks a document whole, its sealed part too.
func (o objects) parse(body []byte, loc Location, id string) (Snapshot, error) {
	doc, err := o.bound(body, loc, id)
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

// checkManifest is unsupported where a newer version keeps its snapshots: they
// are not to be mixed with ours. A manifest that is damaged is no hindrance; the
// save writes another.
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

// overwrites is how often an object is tried to be written over while other
// processes write it too; each lost try is another's won one.
const overwrites = 20

// overwrite writes an object over what is there, and never over a write that
// it has not seen. undo, which is never nil, puts back what was there, also
// after an error, while the object still holds body.
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
	return undo, fault.New(fault.StoreFailed, "snapshot.save", "too many others write the same location; try again")
}

// readOld reads an object that may be missing, then nil.
func (o objects) readOld(ctx context.Context, key Key) ([]byte, error) {
	body, err := o.read(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return nil, nil
	}
	return body, err
}

// readReplaceable is readOld for an object that is written over. One that is larger
// than any document is not read whole, so nothing could take its place: it goes.
func (o objects) readReplaceable(ctx context.Context, key Key) ([]byte, error) {
	body, err := o.readOld(ctx, key)
	if err == nil && len(body) > maxDocument {
		return nil, o.store.Delete(ctx, key)
	}
	return body, err
}

// restore puts an object back to old (nil: absent) if it holds written.
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
	_, err = o.store.Swap(ctx, key, written, old) // not swapped: another's stands there by now
	return err
}

// write puts body where old is, or nothing if that is nil.
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
