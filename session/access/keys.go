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

// KeyPrefix begins every API key, so that a leaked one is recognised.
const KeyPrefix = "stasis_"

// Store keeps the records of keys; see [profiles.KeyStore].
type Store interface {
	CreateKey(ctx context.Context, k profiles.Key) error
	Keys(ctx context.Context) ([]profiles.Key, error) // oldest first
	KeyByHash(ctx context.Context, hash [32]byte) (profiles.Key, error)
	Key(ctx context.Context, id string) (profiles.Key, error)
	DeleteKey(ctx context.Context, id string) error
}

// Keys are the API keys, their tickets, and what is open with each. Its methods are
// safe for concurrent use.
type Keys struct {
	store       Store
	now         func() time.Time
	tickets     *tickets
	connections *connections
}

// NewKeys gives the keys of a store.
func NewKeys(store Store, now func() time.Time) *Keys {
	return &Keys{store: store, now: now, tickets: newTickets(now), connections: newConnections()}
}

// Authenticate returns whose key a secret is; unauthorized where it is nobody's.
func (k *Keys) Authenticate(ctx context.Context, secret string) (Caller, error) {
	rec, err := k.store.KeyByHash(ctx, sha256.Sum256([]byte(secret)))
	if fault.Is(err, fault.KeyNotFound) {
		return Caller{}, fault.New(fault.Unauthorized, "access.authenticate", "the API key is not known")
	}
	if err != nil {
		return Caller{}, err
	}
	return callerOf(rec), nil
}

// Caller is who calls with the key of an ID as it is now. A key that was deleted is
// unauthorized.
func (k *Keys) Caller(ctx context.Context, id string) (Caller, error) {
	rec, err := k.store.Key(ctx, id)
	if fault.Is(err, fault.KeyNotFound) {
		return Caller{}, errKeyDeleted
	}
	return callerOf(rec), err
}

// firstKey is the ID of the key that the daemon begins with; there is one.
const firstKey = "first"

// SetFirst makes the secret the key that the daemon begins with, with every right
// and acting for the user "default". Another secret that was it before is deleted.
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

// Any reports whether there is any key to call with.
func (k *Keys) Any(ctx context.Context) (bool, error) {
	records, err := k.store.Keys(ctx)
	return len(records) > 0, err
}

// Key is what a caller is told of an API key; it is the wire shape.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	UserID    string    `json:"user_id"`
	AllUsers  bool      `json:"all_users"`
	Rights    []Right   `json:"rights"`
	CreatedAt time.Time `json:"created_at"`
}

// CreateKey makes a key and returns its secret, which is kept nowhere.
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

// DeleteKey deletes a key and closes what is open with it: CDP sockets and streams
// of events. Its tickets are dead. Its sessions go on until their limits. The key
// that asks cannot delete itself, so that there is always one that can administer.
func (k *Keys) DeleteKey(ctx context.Context, c Caller, id string) error {
	if err := c.Require(Administer); err != nil {
		return err
	}
	if id == c.KeyID {
		return fault.New(fault.InvalidField, "access.keys", "a key cannot withdraw itself")
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

// names are rights as a key's record has them.
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

// NewSecret makes the secret of an API key: 130 random bits behind a prefix.
func NewSecret() string { return KeyPrefix + rand.Text() }

// IsNewSecret reports whether a secret has the form of one that [NewSecret] made,
// which nobody can guess. A secret that an operator chose has another form.
func IsNewSecret(secret string) bool {
	letters, found := strings.CutPrefix(secret, KeyPrefix)
	return found && IsRandom(letters)
}

// RandomLength is how many letters of base32 have 130 bits: what a secret and a
// ticket have that nobody can guess.
const RandomLength = 26

// IsRandom reports whether text has the form of 130 random bits in base32.
func IsRandom(text string) bool {
	return len(text) == RandomLength && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
