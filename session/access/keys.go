package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/quota"
)

// KeyPrefix begins every API key, so that scanners can recognise a leaked key.
const KeyPrefix = "stasis_"

// Store stores the records of keys; see [profiles.KeyStore].
type Store interface {
	CreateKey(ctx context.Context, k profiles.Key) error
	Keys(ctx context.Context) ([]profiles.Key, error) // oldest first
	KeyByHash(ctx context.Context, hash [32]byte) (profiles.Key, error)
	Key(ctx context.Context, id string) (profiles.Key, error)
	DeleteKey(ctx context.Context, id string) error
	RotateKey(ctx context.Context, id string, hash [32]byte, until time.Time) (profiles.Key, error)
	UseKey(ctx context.Context, id string, at time.Time) error
	SetKeyQuotas(ctx context.Context, id string, change func(was json.RawMessage) (json.RawMessage, error)) (profiles.Key, error)
}

// Keys manages the API keys, their tickets, and what is open with each key. Its methods
// are safe for concurrent use.
type Keys struct {
	store       Store
	now         func() time.Time
	tickets     *tickets
	shared      profiles.TicketStore // of all nodes; nil: tickets has them
	connections *connections
	uses        uses
}

// NewKeys makes Keys on a store. now returns the current time.
func NewKeys(store Store, now func() time.Time) *Keys {
	return &Keys{store: store, now: now, tickets: newTickets(now), connections: newConnections()}
}

// UseTicketStore keeps one-use tickets in the catalogue, where every node finds them. It is
// called before anything else.
func (k *Keys) UseTicketStore(store profiles.TicketStore) { k.shared = store }

// Authenticate returns the caller for the secret of an API key that is used from an
// address. It is unauthorized for an unknown or expired secret, and forbidden if the key
// may not be used from there.
func (k *Keys) Authenticate(ctx context.Context, secret string, from netip.Addr) (Caller, error) {
	const op = "access.authenticate"
	hash := sha256.Sum256([]byte(secret))
	rec, err := k.store.KeyByHash(ctx, hash)
	switch {
	case fault.Is(err, fault.KeyNotFound):
		return Caller{}, fault.New(fault.Unauthorized, op, "the API key is unknown")
	case err != nil:
		return Caller{}, err
	case rec.Hash != hash && !k.now().Before(rec.FormerUntil):
		return Caller{}, fault.New(fault.Unauthorized, op, "the API key has a new secret, and this one is no longer valid")
	case k.expired(rec):
		return Caller{}, errKeyExpired
	case !mayUseFrom(rec.Networks, from):
		return Caller{}, fault.New(fault.Forbidden, op, "the API key may not be used from this address")
	}
	k.noteUse(ctx, rec)
	return callerOf(rec), nil
}

// Caller returns the caller for a key ID, with the key's current rights. A deleted or
// expired key is unauthorized.
func (k *Keys) Caller(ctx context.Context, id string) (Caller, error) {
	rec, err := k.key(ctx, id)
	if err == nil {
		k.noteUse(ctx, rec)
	}
	return callerOf(rec), err
}

// Is reports whether a secret is that of a valid key. It does not count as a use.
func (k *Keys) Is(ctx context.Context, secret string) bool {
	hash := sha256.Sum256([]byte(secret))
	rec, err := k.store.KeyByHash(ctx, hash)
	return err == nil && rec.Hash == hash && !k.expired(rec)
}

// key returns the record of a key that is valid.
func (k *Keys) key(ctx context.Context, id string) (profiles.Key, error) {
	rec, err := k.store.Key(ctx, id)
	switch {
	case fault.Is(err, fault.KeyNotFound):
		return rec, errKeyDeleted
	case err == nil && k.expired(rec):
		return rec, errKeyExpired
	}
	return rec, err
}

// firstKey is the ID of the one key that the daemon creates from its configuration.
const firstKey = "first"

// SetFirst makes secret the daemon's first key. That key has every right and acts for the
// user "default". A first key with another secret is deleted.
func (k *Keys) SetFirst(ctx context.Context, secret string) error {
	hash := sha256.Sum256([]byte(secret))
	records, err := k.store.Keys(ctx)
	if err != nil {
		return err
	}
	for _, rec := range records {
		switch {
		case rec.Hash == hash:
			return nil
		case rec.Former == hash:
			return fault.New(fault.Config, "access.keys", "the first key's secret is the former secret of the key %s; choose another one", rec.ID)
		case rec.ID == firstKey:
			if err := k.store.DeleteKey(ctx, rec.ID); err != nil {
				return err
			}
		}
	}
	return k.store.CreateKey(ctx, profiles.Key{
		ID: firstKey, Name: "first", UserID: "default", AllUsers: true,
		Rights: names([]Right{RightUse, RightSecrets, RightAdmin}), Hash: hash, CreatedAt: k.now().UTC()})
}

// IsFirst reports whether the caller's key is the daemon's first key.
func (c Caller) IsFirst() bool { return c.KeyID == firstKey }

// Any reports whether there is at least one key.
func (k *Keys) Any(ctx context.Context) (bool, error) {
	records, err := k.store.Keys(ctx)
	return len(records) > 0, err
}

// Key describes an API key to callers; it is the wire shape.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	UserID    string    `json:"user_id"`
	AllUsers  bool      `json:"all_users"`
	Rights    []Right   `json:"rights"`
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt is when the key stops working; nil: never.
	ExpiresAt *time.Time `json:"expires_at"`
	// Networks are those that the key may be used from; empty: all.
	Networks []string `json:"networks"`
	// LastUsedAt is when the key was last used, to useStep; nil: never.
	LastUsedAt *time.Time `json:"last_used_at"`
	// FormerSecretUntil is how long the key's secret from before its last rotation is
	// valid; nil: it is not.
	FormerSecretUntil *time.Time   `json:"former_secret_until"`
	Quotas            quota.Quotas `json:"quotas"`
}

// KeyOptions say what a new key may do.
type KeyOptions struct {
	Name      string
	UserID    string
	AllUsers  bool
	Rights    []Right
	ExpiresAt *time.Time     // nil: never
	Networks  []netip.Prefix // those that it may be used from; empty: all
	Quotas    quota.Quotas
}

// CreateKey creates a key and returns its secret, which is not stored.
func (k *Keys) CreateKey(ctx context.Context, c Caller, o KeyOptions) (Key, string, error) {
	if err := c.Require(Administer); err != nil {
		return Key{}, "", err
	}
	if o.ExpiresAt != nil && !o.ExpiresAt.After(k.now()) {
		return Key{}, "", fault.New(fault.InvalidField, "access.keys", "expires_at: must be in the future")
	}
	secret := NewSecret()
	rec := profiles.Key{ID: profiles.NewID(), Name: o.Name, UserID: o.UserID, AllUsers: o.AllUsers, Rights: names(o.Rights),
		Hash: sha256.Sum256([]byte(secret)), CreatedAt: k.now().UTC()}
	if o.ExpiresAt != nil {
		rec.ExpiresAt = o.ExpiresAt.UTC()
	}
	for _, n := range o.Networks {
		rec.Networks = append(rec.Networks, n.String())
	}
	rec.Quotas = recordOf(o.Quotas)
	return k.keyOf(rec), secret, k.store.CreateKey(ctx, rec)
}

// RotateKey gives a key a new secret and returns it. The former secret stays valid for the
// overlap. The key is the same: its sessions, tickets and connections continue.
func (k *Keys) RotateKey(ctx context.Context, c Caller, id string, overlap time.Duration) (Key, string, error) {
	const op = "access.rotate"
	if err := c.Require(Administer); err != nil {
		return Key{}, "", err
	}
	if id == firstKey {
		return Key{}, "", fault.New(fault.InvalidField, op, "the first key cannot be rotated; start the daemon once with STASIS_API_KEY set to its new secret")
	}
	secret := NewSecret()
	rec, err := k.store.RotateKey(ctx, id, sha256.Sum256([]byte(secret)), k.now().Add(overlap).UTC())
	if err != nil {
		return Key{}, "", err
	}
	return k.keyOf(rec), secret, nil
}

// Keys lists the keys, without secrets.
func (k *Keys) Keys(ctx context.Context, c Caller) ([]Key, error) {
	if err := c.Require(Administer); err != nil {
		return nil, err
	}
	records, err := k.store.Keys(ctx)
	list := make([]Key, 0, len(records))
	for _, rec := range records {
		list = append(list, k.keyOf(rec))
	}
	return list, err
}

// DeleteKey deletes a key and closes what is open with it: CDP sockets and event streams.
// Its tickets become invalid. Its sessions continue until their limits. A key cannot
// delete itself. The last key may expire; then the operator makes a new first key with
// STASIS_API_KEY.
func (k *Keys) DeleteKey(ctx context.Context, c Caller, id string) error {
	if err := c.Require(Administer); err != nil {
		return err
	}
	if id == c.KeyID {
		return fault.New(fault.InvalidField, "access.keys", "a key cannot delete itself; use another key with the right \"admin\"")
	}
	if err := k.store.DeleteKey(ctx, id); err != nil {
		return err
	}
	k.connections.end(id)
	k.forgetUse(id)
	return nil
}

func callerOf(k profiles.Key) Caller {
	return Caller{KeyID: k.ID, UserID: k.UserID, AllUsers: k.AllUsers, Rights: rightsOf(k), Quotas: quotasOf(k.Quotas)}
}

func (k *Keys) keyOf(rec profiles.Key) Key {
	key := Key{ID: rec.ID, Name: rec.Name, UserID: rec.UserID, AllUsers: rec.AllUsers, Rights: rightsOf(rec), CreatedAt: rec.CreatedAt.UTC(),
		ExpiresAt: timeOrNil(rec.ExpiresAt), Networks: append([]string{}, rec.Networks...), LastUsedAt: timeOrNil(rec.UsedAt), Quotas: quotasOf(rec.Quotas)}
	if k.now().Before(rec.FormerUntil) {
		key.FormerSecretUntil = timeOrNil(rec.FormerUntil)
	}
	return key
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// names returns rights as strings, as a key's record stores them.
func names(rights []Right) []string {
	recorded := make([]string, 0, len(rights))
	for _, r := range rights {
		recorded = append(recorded, string(r))
	}
	return recorded
}

func rightsOf(k profiles.Key) []Right {
	rights := make([]Right, 0, len(k.Rights))
	for _, r := range k.Rights {
		rights = append(rights, Right(r))
	}
	return rights
}

// NewSecret makes the secret of an API key: 130 random bits after [KeyPrefix].
func NewSecret() string { return KeyPrefix + rand.Text() }

// IsNewSecret reports whether a secret has the form that [NewSecret] makes, which cannot
// be guessed. A secret that an operator chose has another form.
func IsNewSecret(secret string) bool {
	letters, found := strings.CutPrefix(secret, KeyPrefix)
	return found && IsRandom(letters)
}

// RandomLength is the number of base32 letters for 130 random bits. Secrets and tickets
// have that many, so they cannot be guessed.
const RandomLength = 26

// IsRandom reports whether text has the form of 130 random bits in base32.
func IsRandom(text string) bool {
	return len(text) == RandomLength && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
