package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"

	"github.com/stasisd/stasis/fault"
)

// LatestID is the ID under which [Documents] address a location's latest.
const LatestID = "latest"

// Documents keeps agents' own JSON documents in a [Store], at the paths that the file
// storage of the Strands agents SDK uses. Each location has any number of immutable
// documents under IDs, one latest, and a manifest. The latest is a document in its own
// right, not a pointer. Documents are stored unsealed and byte for byte, so that the SDK
// can read them.
//
// Locations with the scope ID "browser" or "notes" do not belong to agents. Every method
// refuses them with scope_reserved. An invalid location is invalid_field, with the
// element's name in the API.
//
// Documents is safe for concurrent use, also by several processes on one store. It holds
// nothing that needs closing. The owner of the store closes the store.
type Documents struct {
	store Store
	opts  Options
	large chan struct{} // one token for each large document under check
}

// Checking a document takes many times its size in memory. So at most maxLarge documents
// of largeDocument bytes or more are checked at once.
const (
	largeDocument = 1 << 20
	maxLarge      = 2
)

// NewDocuments returns the documents of a store.
func NewDocuments(store Store, opts Options) *Documents {
	return &Documents{store: store, opts: opts.withDefaults(), large: make(chan struct{}, maxLarge)}
}

// Save stores a document under an ID once. The same bytes again change nothing; other
// bytes are snapshot_exists. If latest is set, the stored document also becomes the
// location's latest. The ID [LatestID] overwrites only the latest.
//
// A save that failed may have stored the immutable document, and can be repeated. A bad
// body is too_large, invalid_request, unknown_field or invalid_field; another
// schemaVersion is unsupported. See [MaxAgentDocument].
func (d *Documents) Save(ctx context.Context, loc Location, id string, body []byte, latest bool) error {
	if err := requireAgentLocation(loc); err != nil {
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

// check checks an agent's document; see [checkAgentDocument].
func (d *Documents) check(ctx context.Context, body []byte, scope string) error {
	if len(body) >= largeDocument {
		select {
		case d.large <- struct{}{}:
			defer func() { <-d.large }()
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.documents", "the request was cancelled")
		}
	}
	return checkAgentDocument(body, scope)
}

// create writes an immutable document, unless it exists.
func (d *Documents) create(ctx context.Context, loc Location, id string, body []byte) error {
	key, err := loc.DocumentKey(id)
	if err != nil {
		return err
	}
	if err := d.checkSpace(ctx, body); err != nil {
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
			return fault.New(fault.SnapshotExists, "snapshot.documents", "a different document has the ID %s", id)
		}
		return nil
	}
}

// replace overwrites an object, or creates it.
func (d *Documents) replace(ctx context.Context, key Key, body []byte) (err error) {
	if err := d.checkSpace(ctx, body); err != nil {
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

// checkSpace keeps the vault's reserve free for browser snapshots.
func (d *Documents) checkSpace(ctx context.Context, body []byte) error {
	return checkSpace(ctx, d.store, d.opts.Reserve, int64(len(body)))
}

// Load returns the document with an ID, or the latest for [LatestID]. A missing document
// is snapshot_not_found, an invalid one archive_damaged, and one of another schemaVersion
// unsupported.
func (d *Documents) Load(ctx context.Context, loc Location, id string) ([]byte, error) {
	key, err := d.key(loc, id)
	if err != nil {
		return nil, err
	}
	return d.load(ctx, key, id, MaxAgentDocument, func(body []byte) error { return d.check(ctx, body, loc.Scope) })
}

// key returns the key of a document.
func (d *Documents) key(loc Location, id string) (Key, error) {
	if err := requireAgentLocation(loc); err != nil {
		return Key{}, err
	}
	if id == LatestID {
		return loc.LatestKey()
	}
	return loc.DocumentKey(id)
}

// load reads a document that another program may have written, and returns
// archive_damaged if it is not valid.
func (d *Documents) load(ctx context.Context, key Key, called string, limit int, check func([]byte) error) ([]byte, error) {
	body, err := readObject(ctx, d.store, key, limit)
	if err != nil {
		return nil, err
	}
	if err := check(body); fault.Is(err, fault.Unsupported) || fault.Is(err, fault.Timeout) {
		return nil, err
	} else if err != nil {
		return nil, damaged(called, "the stored object is not an agent document", err)
	}
	return body, nil
}

// List is [Vault.List] for an agent's location. It returns the IDs of the immutable
// documents.
func (d *Documents) List(ctx context.Context, loc Location, limit int, startAfter string) (ids []string, next string, err error) {
	if err := requireAgentLocation(loc); err != nil {
		return nil, "", err
	}
	return listIDs(ctx, d.store, loc, limit, startAfter)
}

// Manifest returns a location's manifest: {schemaVersion, updatedAt}. If none was saved,
// it returns a new one with the current time. Otherwise it behaves like [Documents.Load].
func (d *Documents) Manifest(ctx context.Context, loc Location) ([]byte, error) {
	if err := requireAgentLocation(loc); err != nil {
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

// SaveManifest overwrites a location's manifest. It fails as [Documents.Save] does.
func (d *Documents) SaveManifest(ctx context.Context, loc Location, body []byte) error {
	if err := requireAgentLocation(loc); err != nil {
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

// requireAgentLocation accepts only the locations of agents.
func requireAgentLocation(loc Location) error {
	if err := loc.Check(); err != nil {
		return err
	}
	if reserved(loc.ScopeID) {
		return fault.New(fault.ScopeReserved, "snapshot.documents", "scope_id: %s is kept for Stasis's own snapshots", loc.ScopeID)
	}
	return nil
}

func reserved(scopeID string) bool { return scopeID == environments || scopeID == "notes" }

// HasSession reports whether agents have a document or manifest in a session of an owner.
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
