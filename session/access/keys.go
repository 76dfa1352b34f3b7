package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
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
}

// Keys manages the API keys, their tickets, and what is open with each key. Its methods
// are safe for concurrent use.
type Keys struct {
	store       Store
	now         func() time.Time
	tickets     *tickets
	connections *connections
}

// NewKeys makes Keys on a store. now returns the current time.
func NewKeys(store Store, now func() time.Time) *Keys {
	return &Keys{store: store, now: now, tickets: newTickets(now), connections: newConnections()}
}

// Authenticate returns the caller for an API key's secret, or unauthorized for an unknown
// secret.
func (k *Keys) Authenticate(ctx context.Context, secret string) (Caller, error) {
	rec, err := k.store.KeyByHash(ctx, sha256.Sum256([]byte(secret)))
	if fault.Is(err, fault.KeyNotFound) {
		return Caller{}, fault.New(fault.Unauthorized, "access.authenticate", "the API key is unknown")
	}
	if err != nil {
		return Caller{}, err
	}
	return callerOf(rec), nil
}

// Caller returns the caller for a key ID, with the key's current rights. A deleted key is
// unauthorized.
func (k *Keys) Caller(ctx context.Context, id string) (Caller, error) {
	rec, err := k.store.Key(ctx, id)
	if fault.Is(err, fault.KeyNotFound) {
		return Caller{}, errKeyDeleted
	}
	return callerOf(rec), err
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
}

// CreateKey creates a key and returns its secret, which is not stored.
func (k *Keys) CreateKey(ctx context.Context, c Caller, name, userID string, allUsers bool, rights []Right) (Key, string, error) {
	if err := c.Require(Administer); err != nil {
		return Key{}, "", err
	}
	secret := NewSecret()
	rec := profiles.Key{ID: profiles.NewID(), Name: name, UserID: userID, AllUsers: allUsers, Rights: names(rights),
		Hash: sha256.Sum256([]byte(secret)), CreatedAt: k.now().UTC()}
	return keyOf(rec), secret, k.store.CreateKey(ctx, rec)
}

// Keys lists the keys, without secrets.
func (k *Keys) Keys(ctx context.Context, c Caller) ([]Key, error) {
	if err := c.Require(Administer); err != nil {
		return nil, err
	}
	records, err := k.store.Keys(ctx)
	list := make([]Key, 0, len(records))
	for _, rec := range records {
		list = append(list, keyOf(rec))
	}
	return list, err
}

// DeleteKey deletes a key and closes what is open with it: CDP sockets and event streams.
// Its tickets become invalid. Its sessions continue until their limits. A key cannot
// delete itself, so one key with the admin right always remains.
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
	return nil
}

func callerOf(k profiles.Key) Caller {
	return Caller{KeyID: k.ID, UserID: k.UserID, AllUsers: k.AllUsers, Rights: rightsOf(k)}
}

func keyOf(k profiles.Key) Key {
	return Key{k.ID, k.Name, k.UserID, k.AllUsers, rightsOf(k), k.CreatedAt.UTC()}
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
