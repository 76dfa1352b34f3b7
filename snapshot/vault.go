package snapshot

import (
	"context"
	"time"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/wire"
)

// Options adjust a [Vault] or [Documents].
type Options struct {
	// Now returns the time for manifests. Required.
	Now func() time.Time
	// Reserve is the space, in bytes, that CheckSpace keeps free in addition to its
	// argument. 0 means [DefaultReserve].
	Reserve int64
	// Uses decides between the processes that share the store; nil: there is one.
	Uses Uses
}

func (o Options) withDefaults() Options {
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
	return o
}

// DefaultReserve is the space kept for documents, the catalogue and logs, in bytes.
const DefaultReserve = 16 << 20

// Vault saves, opens and deletes snapshots in one [Store]. It is safe for concurrent use
// and holds nothing that needs closing. The owner of the store closes the store.
type Vault struct {
	store Store
	keys  Keys
	opts  Options
	locks keyLocks
	uses  Uses // nil: no other process saves into the store

	objects objects
	files   archiveFiles
	sharing sharing
}

// NewVault returns a vault over a store.
func NewVault(store Store, keys Keys, opts Options) *Vault {
	return &Vault{store: store, keys: keys, opts: opts.withDefaults(), uses: opts.Uses, objects: objects{store, keys}, files: archiveFiles{store, keys},
		sharing: sharing{snapshots: map[string]map[string]bool{}}}
}

// CheckSpace returns store_full if the store has no space for need more bytes and the
// reserve. It returns store_failed if the store does not answer. Callers call it before
// they change what is to be saved.
func (v *Vault) CheckSpace(ctx context.Context, need int64) error {
	return checkSpace(ctx, v.store, v.opts.Reserve, need)
}

func checkSpace(ctx context.Context, s Store, reserve, need int64) error {
	free, err := s.FreeSpace(ctx)
	if err != nil {
		return err
	}
	if free != Unlimited && free-reserve < need {
		return fault.New(fault.StoreFull, "snapshot.check_space",
			"the snapshot may need %d bytes, but the store has %d bytes left, of which %d must stay free; delete snapshots or add space", need, free, reserve)
	}
	return nil
}

// Health reports whether the store can be read and written.
func (v *Vault) Health(ctx context.Context) error { return v.store.Health(ctx) }

// Open reads a snapshot's document, checks its location and ID, and unseals its private
// part. The private part stays nil if the keys hold no identity. Errors:
// snapshot_not_found, archive_damaged, identity_missing, unsupported, invalid_field, and
// the store's.
func (v *Vault) Open(ctx context.Context, loc Location, id string) (Snapshot, error) {
	key, err := loc.DocumentKey(id)
	if err != nil {
		return Snapshot{}, err
	}
	return v.objects.openKey(ctx, key, loc, id)
}

// Latest opens the snapshot in the location's snapshot_latest.json, the last one saved
// there. If there is none, the error is snapshot_not_found.
func (v *Vault) Latest(ctx context.Context, loc Location) (Snapshot, error) {
	key, err := loc.LatestKey()
	if err != nil {
		return Snapshot{}, err
	}
	return v.objects.openKey(ctx, key, loc, "")
}

// Readable returns identity_missing if there is no identity at all. It reads nothing; an
// archive may still be sealed to others.
func (v *Vault) Readable(s Snapshot) error {
	if len(v.keys.identities) > 0 {
		return nil
	}
	return v.keys.identityMissing(&age.NoIdentityMatchError{}, s.ID, nil, s.Recipients)
}

// List returns up to limit snapshot IDs of a location in ascending order, which is oldest
// first for UUIDv7.
// startAfter is an exclusive cursor; "" starts at the oldest. next is the cursor of the
// next page, or "" at the end. A limit outside 1–1000 becomes 100.
func (v *Vault) List(ctx context.Context, loc Location, limit int, startAfter string) (ids []string, next string, err error) {
	return listIDs(ctx, v.store, loc, limit, startAfter)
}

// manifest is a location's manifest.json.
type manifest struct {
	SchemaVersion string    `json:"schemaVersion"`
	UpdatedAt     time.Time `json:"updatedAt"`
}

func newManifest(now time.Time) ([]byte, error) {
	return wire.Marshal(manifest{SchemaVersion: SchemaVersion, UpdatedAt: now})
}
