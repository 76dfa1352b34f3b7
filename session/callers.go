package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// KeyPrefix begins every API key, so that a leaked one is recognised.
const KeyPrefix = "stasis_"

// Authenticate returns whose key a secret is.
func (s *Service) Authenticate(ctx context.Context, secret string) (Caller, error) {
	k, err := s.Catalogue.KeyByHash(ctx, sha256.Sum256([]byte(secret)))
	if fault.Is(err, fault.KeyNotFound) {
		return Caller{}, fault.New(fault.Unauthorized, "session.authenticate", "the API key is not known")
	}
	if err != nil {
		return Caller{}, err
	}
	return callerOf(k), nil
}

// callerOf is who calls with a key.
func callerOf(k profiles.Key) Caller {
	return Caller{KeyID: k.ID, UserID: k.UserID, AllUsers: k.AllUsers, Rights: rightsOf(k)}
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

// withKey is who calls with the key of an ID as it is now. One that was deleted
// is unauthorized.
func (s *Service) withKey(ctx context.Context, id string) (Caller, error) {
	k, err := s.Catalogue.Key(ctx, id)
	if fault.Is(err, fault.KeyNotFound) {
		return Caller{}, errKeyDeleted
	}
	return callerOf(k), err
}

// firstKey is the ID of the key that the daemon begins with; there is one.
const firstKey = "first"

// FirstKey makes the secret the key that the daemon begins with, with every
// right and acting for the user "default". Another secret that was it before
// is withdrawn.
func (s *Service) FirstKey(ctx context.Context, secret string) error {
	hash := sha256.Sum256([]byte(secret))
	keys, err := s.Catalogue.Keys(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		switch {
		case k.Hash == hash:
			return nil
		case k.ID == firstKey:
			if err := s.Catalogue.DeleteKey(ctx, k.ID); err != nil {
				return err
			}
		}
	}
	return s.Catalogue.CreateKey(ctx, profiles.Key{
		ID: firstKey, Name: "first", UserID: "default", AllUsers: true,
		Rights: names([]Right{RightUse, RightSecrets, RightAdmin}), Hash: hash, CreatedAt: s.Now().UTC()})
}

// HasKeys reports whether there is any key to call with.
func (s *Service) HasKeys(ctx context.Context) (bool, error) {
	keys, err := s.Catalogue.Keys(ctx)
	return len(keys) > 0, err
}

// NewSecret makes the secret of an API key: 130 random bits behind a prefix.
func NewSecret() string { return KeyPrefix + rand.Text() }

// IsNewSecret reports whether a secret has the form of one that [NewSecret] made,
// which nobody can guess. One that an operator chose has another.
func IsNewSecret(secret string) bool {
	letters, found := strings.CutPrefix(secret, KeyPrefix)
	return found && isRandom(letters)
}

// isRandom reports whether text has the form of 130 random bits in base32.
func isRandom(text string) bool {
	return len(text) == macLength && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
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

func keyOf(k profiles.Key) Key {
	return Key{k.ID, k.Name, k.UserID, k.AllUsers, rightsOf(k), k.CreatedAt.UTC()}
}

// CreateKey makes a key and tells its secret, the only time that it is told.
func (s *Service) CreateKey(ctx context.Context, c Caller, name, userID string, allUsers bool, rights []Right) (Key, string, error) {
	if err := c.require(administer); err != nil {
		return Key{}, "", err
	}
	secret := NewSecret()
	k := profiles.Key{ID: newID(), Name: name, UserID: userID, AllUsers: allUsers, Rights: names(rights),
		Hash: sha256.Sum256([]byte(secret)), CreatedAt: s.Now().UTC()}
	return keyOf(k), secret, s.Catalogue.CreateKey(ctx, k)
}

// Keys lists the keys, without secrets.
func (s *Service) Keys(ctx context.Context, c Caller) ([]Key, error) {
	if err := c.require(administer); err != nil {
		return nil, err
	}
	records, err := s.Catalogue.Keys(ctx)
	return each(records, keyOf), err
}

// DeleteKey deletes a key and closes what is open with it: CDP sockets and
// streams of events. Its tickets are dead. Its sessions go on until their limits.
// The key that asks cannot delete itself, so that there is always one that can
// administer.
func (s *Service) DeleteKey(ctx context.Context, c Caller, id string) error {
	if err := c.require(administer); err != nil {
		return err
	}
	if id == c.KeyID {
		return fault.New(fault.InvalidField, "session.keys", "a key cannot withdraw itself")
	}
	if err := s.Catalogue.DeleteKey(ctx, id); err != nil {
		return err
	}
	s.connections.end(id)
	return nil
}

// newID makes a UUIDv7: unique, and in the order of time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
