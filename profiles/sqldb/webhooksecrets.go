package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// WebhookSecrets is the store of the secrets of receivers of webhooks. It implements
// [profiles.WebhookSecretStore].
type WebhookSecrets struct{ db *handle }

var _ profiles.WebhookSecretStore = (*WebhookSecrets)(nil)

const webhookSecretColumns = "user_id, url, sealed, created_at, former, former_until"

func scanWebhookSecret(r row) (s profiles.WebhookSecret, err error) {
	var user []byte
	err = r.Scan(&user, &s.URL, &s.Sealed, moment{&s.CreatedAt}, &s.Former, moment{&s.FormerUntil})
	s.UserID = string(user)
	return s, err
}

func webhookSecret(ctx context.Context, q querier, userID, url string) (profiles.WebhookSecret, error) {
	return scanWebhookSecret(q.QueryRowContext(ctx, "SELECT "+webhookSecretColumns+" FROM webhook_secrets WHERE user_id = ? AND url = ?", []byte(userID), url))
}

// SetWebhookSecret implements [profiles.WebhookSecretStore].
func (st *WebhookSecrets) SetWebhookSecret(ctx context.Context, s profiles.WebhookSecret, formerUntil time.Time) (profiles.WebhookSecret, error) {
	const op = "profiles.set_webhook_secret"
	err := st.db.write(ctx, op, func(tx *sql.Tx) error {
		s.Former, s.FormerUntil = nil, time.Time{}
		was, err := webhookSecret(ctx, tx, s.UserID, s.URL)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			var n int
			if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM webhook_secrets WHERE user_id = ?", []byte(s.UserID)).Scan(&n); err != nil {
				return err
			}
			if n >= profiles.MaxWebhookSecrets {
				return fault.New(fault.InvalidField, op, "url: the user has %d secrets of receivers, which is the most; delete one", n)
			}
		case err != nil:
			return err
		case formerUntil.After(s.CreatedAt):
			s.Former, s.FormerUntil = was.Sealed, formerUntil.UTC()
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO webhook_secrets ("+webhookSecretColumns+") VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (user_id, url) "+
			"DO UPDATE SET sealed = excluded.sealed, created_at = excluded.created_at, former = excluded.former, former_until = excluded.former_until",
			[]byte(s.UserID), s.URL, s.Sealed, stamp(s.CreatedAt), s.Former, stamp(s.FormerUntil))
		return err
	})
	return s, err
}

// WebhookSecret implements [profiles.WebhookSecretStore].
func (st *WebhookSecrets) WebhookSecret(ctx context.Context, userID, url string) (profiles.WebhookSecret, error) {
	s, err := webhookSecret(ctx, st.db.reader, userID, url)
	return s, orMissing(err, fault.NotFound, "profiles.webhook_secret")
}

// WebhookSecrets implements [profiles.WebhookSecretStore].
func (st *WebhookSecrets) WebhookSecrets(ctx context.Context, userID string) ([]profiles.WebhookSecret, error) {
	query, args := "SELECT "+webhookSecretColumns+" FROM webhook_secrets", []any{}
	if userID != "" {
		query, args = query+" WHERE user_id = ?", append(args, []byte(userID))
	}
	all, err := collect(ctx, st.db.reader, scanWebhookSecret, query+" ORDER BY user_id, url", args...)
	return all, failure("profiles.webhook_secrets", err)
}

// DeleteWebhookSecret implements [profiles.WebhookSecretStore].
func (st *WebhookSecrets) DeleteWebhookSecret(ctx context.Context, userID, url string) error {
	const op = "profiles.delete_webhook_secret"
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "DELETE FROM webhook_secrets WHERE user_id = ? AND url = ?", []byte(userID), url)
		return requireRow(r, err, fault.NotFound, op)
	})
}

// ResealWebhookSecret implements [profiles.WebhookSecretStore].
func (st *WebhookSecrets) ResealWebhookSecret(ctx context.Context, was, now profiles.WebhookSecret) error {
	return st.db.write(ctx, "profiles.reseal_webhook_secret", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE webhook_secrets SET sealed = ?, former = ? WHERE user_id = ? AND url = ? AND sealed = ?",
			now.Sealed, now.Former, []byte(was.UserID), was.URL, was.Sealed)
		return err
	})
}
