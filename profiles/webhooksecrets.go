package profiles

import (
	"context"
	"time"
)

// WebhookSecret is the secret that signs the webhooks of a user to one receiver. The
// secrets are sealed, and opaque here.
type WebhookSecret struct {
	UserID    string
	URL       string // "": the receivers of the user without their own secret
	Sealed    []byte
	CreatedAt time.Time
	// Former is the secret before this one, which signs too until FormerUntil. Both are zero
	// if there is none.
	Former      []byte
	FormerUntil time.Time
}

// MaxWebhookSecrets is how many secrets of receivers a user may have.
const MaxWebhookSecrets = 256

// WebhookSecretStore keeps the secrets of receivers of webhooks. An unknown one is
// not_found.
type WebhookSecretStore interface {
	// SetWebhookSecret records the secret of a receiver. If it has one, that is the former
	// secret until the time; a time that is not after CreatedAt drops it. More than
	// MaxWebhookSecrets of a user are invalid_field.
	SetWebhookSecret(ctx context.Context, s WebhookSecret, formerUntil time.Time) (WebhookSecret, error)
	// WebhookSecret returns the secret of a receiver.
	WebhookSecret(ctx context.Context, userID, url string) (WebhookSecret, error)
	// WebhookSecrets lists the secrets of a user, "" for every user, by user and URL.
	WebhookSecrets(ctx context.Context, userID string) ([]WebhookSecret, error)
	// DeleteWebhookSecret deletes the secret of a receiver.
	DeleteWebhookSecret(ctx context.Context, userID, url string) error
	// ResealWebhookSecret replaces what is sealed in a secret, unless it has changed
	// meanwhile.
	ResealWebhookSecret(ctx context.Context, was, now WebhookSecret) error
}
