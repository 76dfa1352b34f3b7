package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// LatestID stands, among the IDs of [Documents], for a location's latest.
const LatestID = "latest"

// Documents keeps agents' own JSON documents in a [Store], where the file
// storage of the Strands agents SDK keeps them: in each location any number of
// immutable ones under IDs, one latest, which is a document by itself and no
// pointer, and a manifest. They are not sealed, so that the SDK reads them, and
// they are kept byte for byte as they were given.
//
// The locations of which the scope ID is "browser" or "notes" are not agents':
// every method refuses them with scope_reserved. Another location that is none
// is invalid_field, by the name that the wire has for the element.
//
// Documents is safe for concurrent use, also by other processes on the same
// store, and holds nothing that needs closing; the store is its owner's to
// close.
type Documents struct {
	store Store
	opts  Options
	large chan struct{} // one for each large document that is checked
}

// Checking a document takes many times its bytes of memory, so of the large ones,
// from largeDocument bytes on, only maxLarge are checked at once.
const (
	largeDocument = 1 << 20
	maxLarge      = 2
)

// NewDocuments returns the documents of a store.
func NewDocuments(store Store, opts Options) *Documents {
	return &Documents{store: store, opts: opts.withDefaults(), large: make(chan struct{}, maxLarge)}
}

// Save keeps a document under an ID, once: the same bytes again change nothing,
// other ones are snapshot_exists. With latest, what is kept under the ID is
// then the location's latest too. The ID [LatestID] writes over that alone.
//
// A save that failed may have kept the immutable document, and can be repeated.
// What is wrong with the body is too_large, invalid_request, unknown_field,
// invalid_field, or unsupported for another schemaVersion; see
// [MaxAgentDocument].
func (d *Documents) Save(ctx context.Context, loc Location, id string, body []byte, latest bool) error {
	if err := own(loc); err != nil {
		return err
	}
	if err := d.check(ctx, body, loc.Scope); err != nil {
		return err
	}
	if id != LatestID {
		if err := d.create(ctx, loc, id, body); err != nil || !latest {
			return err
		}
	}
	key, err := loc.LatestKey()
	if err != nil {
		return err
	}
	return d.replace(ctx, key, body)
}

// check reports what is wrong with an agent's document; see [checkAgentDocument].
func (d *Documents) check(ctx context.Context, body []byte, scope string) error {
	if len(body) >= largeDocument {
		select {
		case d.large <- struct{}{}:
			defer func() { <-d.large }()
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.documents", "the request was given up")
		}
	}
	return checkAgentDocument(body, scope)
}

// create writes an immutable document, unless it is there already.
func (d *Documents) create(ctx context.Context, loc Location, id string, body []byte) error {
	key, err := loc.DocumentKey(id)
	if err != nil {
		return err
	}
	if err := d.room(ctx, body); err != nil {
		return err
	}
	for {
		created, err := d.store.Create(ctx, key, body)
		if created || err != nil {
			return err
		}
		there, err := readObject(ctx, d.store, key, MaxAgentDocument)
		switch {
		case fault.Is(err, fault.SnapshotNotFound): // deleted meanwhile
			continue
		case err != nil:
			return err
		case !bytes.Equal(there, body):
			return fault.New(fault.SnapshotExists, "snapshot.documents", "another document has the ID %s", id)
		}
		return nil
	}
}

// replace writes an object over whatever is there.
func (d *Documents) replace(ctx context.Context, key Key, body []byte) (err error) {
	if err := d.room(ctx, body); err != nil {
		return err
	}
	up, err := d.store.Upload(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Abort()) }()
	if _, err := up.Write(body); err != nil {
		return err
	}
	return up.Replace(ctx, key, Sum{Size: int64(len(body)), SHA256: sha256.Sum256(body)})
}

// room leaves to browsers' snapshots what the vault keeps free for them.
func (d *Documents) room(ctx context.Context, body []byte) error {
	return checkRoom(ctx, d.store, d.opts.Reserve, int64(len(body)))
}

// Load gives the document of an ID, or the latest for [LatestID]. A missing one
// is snapshot_not_found, one that is none archive_damaged, and one of another
// schemaVersion unsupported.
func (d *Documents) Load(ctx context.Context, loc Location, id string) ([]byte, error) {
	key, err := d.key(loc, id)
	if err != nil {
		return nil, err
	}
	return d.load(ctx, key, id, MaxAgentDocument, func(body []byte) error { return d.check(ctx, body, loc.Scope) })
}

// key is where a document is.
func (d *Documents) key(loc Location, id string) (Key, error) {
	if err := own(loc); err != nil {
		return Key{}, err
	}
	if id == LatestID {
		return loc.LatestKey()
	}
	return loc.DocumentKey(id)
}

// load reads what others may have written, and says so where it is not sound.
func (d *Documents) load(ctx context.Context, key Key, called string, limit int, check func([]byte) error) ([]byte, error) {
	body, err := readObject(ctx, d.store, key, limit)
	if err != nil {
		return nil, err
	}
	if err := check(body); fault.Is(err, fault.Unsupported) || fault.Is(err, fault.Timeout) {
		return nil, err
	} else if err != nil {
		return nil, damaged(called, "what is stored is no agent's document", err)
	}
	return body, nil
}

// List is [Vault.List] for a location of an agent's: IDs of its immutable
// documents.
func (d *Documents) List(ctx context.Context, loc Location, limit int, startAfter string) (ids []string, next string, err error) {
	if err := own(loc); err != nil {
		return nil, "", err
	}
	return listIDs(ctx, d.store, loc, limit, startAfter)
}

// Manifest gives a location's manifest: {schemaVersion, updatedAt}. One that
// was never saved is as new, of now; otherwise it is as [Documents.Load].
func (d *Documents) Manifest(ctx context.Context, loc Location) ([]byte, error) {
	if err := own(loc); err != nil {
		return nil, err
	}
	key, err := loc.ManifestKey()
	if err != nil {
		return nil, err
	}
	body, err := d.load(ctx, key, "manifest", maxManifest, checkManifest)
	if fault.Is(err, fault.SnapshotNotFound) {
		return newManifest(d.opts.Now())
	}
	return body, err
}

// SaveManifest writes a location's manifest over the one that is there. It
// fails as [Documents.Save] does.
func (d *Documents) SaveManifest(ctx context.Context, loc Location, body []byte) error {
	if err := own(loc); err != nil {
		return err
	}
	if err := checkManifest(body); err != nil {
		return err
	}
	key, err := loc.ManifestKey()
	if err != nil {
		return err
	}
	return d.replace(ctx, key, body)
}

// own lets the locations of agents pass.
func own(loc Location) error {
	if err := loc.Check(); err != nil {
		return err
	}
	if reserved(loc.ScopeID) {
		return fault.New(fault.ScopeReserved, "snapshot.documents", "scope_id: %s is kept for Stasis's own snapshots", loc.ScopeID)
	}
	return nil
}

func reserved(scopeID string) bool { return scopeID == environments || scopeID == "notes" }

// HasSession reports whether agents have any document or manifest in a session of
// an owner.
func (d *Documents) HasSession(ctx context.Context, owner, session string) (bool, error) {
	of := Location{Owner: owner, Session: session, Scope: "agent", ScopeID: "any"}
	if err := of.Check(); err != nil {
		return false, err
	}
	all, err := scopes(ctx, d.store, of)
	if err != nil {
		return false, err
	}
	for _, loc := range all {
		if reserved(loc.ScopeID) {
			continue
		}
		if has, err := d.has(ctx, loc); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

func (d *Documents) has(ctx context.Context, loc Location) (bool, error) {
	for _, key := range []func() (Key, error){loc.LatestKey, loc.ManifestKey} {
		k, err := key()
		if err != nil {
			return false, err
		}
		if _, err := d.store.Stat(ctx, k); !fault.Is(err, fault.SnapshotNotFound) {
			return err == nil, err
		}
	}
	ids, _, err := listIDs(ctx, d.store, loc, 1, "")
	return len(ids) > 0, err
}
