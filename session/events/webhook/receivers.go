package webhook

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// Sealer seals what the catalogue keeps; see snapshot.Vault.
type Sealer interface {
	Seal(plain []byte) ([]byte, error)
	Unseal(sealed []byte) ([]byte, error)
}

// ReceiversConfig is what NewReceivers needs.
type ReceiversConfig struct {
	Store  profiles.WebhookSecretStore
	Sealer Sealer
	Daemon Secret // signs for receivers without their own secret
	// Operator is the daemon's own URL, whose webhooks only Daemon signs; "": none. A user
	// who names this URL too must not change what it trusts.
	Operator string
	Now      func() time.Time
}

// Receivers has the secrets of receivers of webhooks. A receiver is a URL of a user's
// sessions. Its methods are safe for concurrent use.
type Receivers struct{ cfg ReceiversConfig }

// NewReceivers makes Receivers.
func NewReceivers(c ReceiversConfig) *Receivers { return &Receivers{c} }

// Receiver describes a receiver's secret, without the secret; it is the wire shape.
type Receiver struct {
	UserID    string    `json:"user_id"`
	URL       *string   `json:"url"` // nil: the user's receivers without their own secret
	CreatedAt time.Time `json:"created_at"`
	// FormerSecretUntil is how long the secret before this one signs too; nil: it does not.
	FormerSecretUntil *time.Time `json:"former_secret_until"`
}

func (r *Receivers) receiverOf(s profiles.WebhookSecret) Receiver {
	receiver := Receiver{UserID: s.UserID, CreatedAt: s.CreatedAt.UTC()}
	if s.URL != "" {
		receiver.URL = &s.URL
	}
	if until := s.FormerUntil.UTC(); r.cfg.Now().Before(until) {
		receiver.FormerSecretUntil = &until
	}
	return receiver
}

// SecretOptions say which secret a receiver gets.
type SecretOptions struct {
	UserID  string
	URL     string        // "": the user's receivers without their own secret
	Secret  Secret        // nil: a new one
	Overlap time.Duration // how long the present secret signs too
}

// SetSecret sets the secret of a receiver. If it is a new one, made is that secret, which
// is shown nowhere else.
func (r *Receivers) SetSecret(ctx context.Context, c access.Caller, o SecretOptions) (_ Receiver, made Secret, err error) {
	if err := c.ForUser(o.UserID, access.Manage); err != nil {
		return Receiver{}, nil, err
	}
	if o.Secret == nil {
		made = NewSecret()
		o.Secret = made
	}
	sealed, err := r.cfg.Sealer.Seal(o.Secret)
	if err != nil {
		return Receiver{}, nil, err
	}
	now := r.cfg.Now().UTC()
	rec, err := r.cfg.Store.SetWebhookSecret(ctx, profiles.WebhookSecret{UserID: o.UserID, URL: o.URL, Sealed: sealed, CreatedAt: now}, now.Add(o.Overlap))
	if err != nil {
		return Receiver{}, nil, err
	}
	return r.receiverOf(rec), made, nil
}

// Secrets lists the receivers of a user that have a secret; userID "" means all that the
// caller may act for.
func (r *Receivers) Secrets(ctx context.Context, c access.Caller, userID string) ([]Receiver, error) {
	if userID == "" && !c.ForEveryUser() {
		userID = c.UserID
	}
	if err := c.Require(access.Look); err != nil {
		return nil, err
	}
	if userID != "" {
		if err := c.ForUser(userID, access.Look); err != nil {
			return nil, err
		}
	}
	records, err := r.cfg.Store.WebhookSecrets(ctx, userID)
	list := make([]Receiver, 0, len(records))
	for _, rec := range records {
		list = append(list, r.receiverOf(rec))
	}
	return list, err
}

// DeleteSecret deletes the secret of a receiver. From then on the one of the user's other
// receivers signs, or the daemon's.
func (r *Receivers) DeleteSecret(ctx context.Context, c access.Caller, userID, url string) error {
	if err := c.ForUser(userID, access.Manage); err != nil {
		return err
	}
	return r.cfg.Store.DeleteWebhookSecret(ctx, userID, url)
}

// For returns the secrets that sign a delivery, newest first.
func (r *Receivers) For(ctx context.Context, d profiles.Delivery) ([]Secret, error) {
	if d.Operator || d.URL == r.cfg.Operator {
		return []Secret{r.cfg.Daemon}, nil
	}
	rec, err := r.cfg.Store.WebhookSecret(ctx, d.UserID, d.URL)
	if fault.Is(err, fault.NotFound) {
		rec, err = r.cfg.Store.WebhookSecret(ctx, d.UserID, "")
	}
	if fault.Is(err, fault.NotFound) {
		return []Secret{r.cfg.Daemon}, nil
	}
	if err != nil {
		return nil, err
	}
	sealed := [][]byte{rec.Sealed}
	if r.cfg.Now().Before(rec.FormerUntil) {
		sealed = append(sealed, rec.Former)
	}
	var secrets []Secret
	for _, s := range sealed {
		secret, err := r.cfg.Sealer.Unseal(s)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}
