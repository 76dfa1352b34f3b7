package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/events/webhook"
)

// WebhookSecrets manages the secrets of receivers of webhooks.
type WebhookSecrets interface {
	// SetSecret also returns the secret if it made one. It is stored only sealed.
	SetSecret(ctx context.Context, c access.Caller, o webhook.SecretOptions) (_ webhook.Receiver, made webhook.Secret, err error)
	Secrets(ctx context.Context, c access.Caller, userID string) ([]webhook.Receiver, error)
	DeleteSecret(ctx context.Context, c access.Caller, userID, url string) error
}

var _ WebhookSecrets = (*webhook.Receivers)(nil)

// webhookSecretHandler answers /v1/webhooks/secrets.
type webhookSecretHandler struct {
	secrets WebhookSecrets
	bodies  *bodyDecoder
}

// receiverQuery names a receiver in a query.
type receiverQuery struct {
	UserID string `json:"user_id"`
	URL    string `json:"url"`
}

func (h *webhookSecretHandler) list(c *call) error {
	var q struct {
		UserID string `json:"user_id"`
	}
	if err := c.query(&q); err != nil {
		return err
	}
	if q.UserID != "" {
		if err := isUserID("user_id", q.UserID); err != nil {
			return err
		}
	}
	c.audit.listing(c, q.UserID)
	list, err := h.secrets.Secrets(c.Request().Context(), c.caller, q.UserID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"secrets": list})
}

// receiver completes the audited call about a user's receiver. Its path and its query can be
// secret, so the entry has only the scheme and the host. An empty address means all others.
func (a *auditedCall) receiver(userID, address string) {
	a.UserID = userID
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		a.Object = u.Scheme + "://" + u.Host
	}
}

func (h *webhookSecretHandler) put(c *call) error {
	var body struct {
		receiverQuery
		Secret  string `json:"secret"`
		Overlap int64  `json:"overlap_seconds"`
	}
	if _, err := h.bodies.decode(c, &body); err != nil {
		return err
	}
	o := webhook.SecretOptions{UserID: cmp.Or(body.UserID, c.caller.UserID), URL: body.URL, Overlap: seconds(body.Overlap)}
	if err := firstOf(isUserID("user_id", o.UserID), isHookURL("url", body.URL), withinSeconds("overlap_seconds", body.Overlap, 0, maxOverlap)); err != nil {
		return err
	}
	c.audit.receiver(o.UserID, o.URL)
	if body.Secret != "" {
		var err error
		if o.Secret, err = webhook.ParseSecret(body.Secret); err != nil {
			return invalid("secret", "must be whsec_ followed by 24 to 64 bytes in base64; leave it out, and Stasis makes one")
		}
	}
	receiver, made, err := h.secrets.SetSecret(c.Request().Context(), c.caller, o)
	if err != nil {
		return err
	}
	answer := struct {
		webhook.Receiver
		Secret *string `json:"secret"`
	}{Receiver: receiver}
	if made != nil {
		text := made.Text()
		answer.Secret = &text
	}
	return c.JSON(http.StatusOK, answer)
}

func (h *webhookSecretHandler) delete(c *call) error {
	var q receiverQuery
	if err := c.query(&q); err != nil {
		return err
	}
	user := cmp.Or(q.UserID, c.caller.UserID)
	if err := firstOf(isUserID("user_id", user), isHookURL("url", q.URL)); err != nil {
		return err
	}
	c.audit.receiver(user, q.URL)
	if err := h.secrets.DeleteSecret(c.Request().Context(), c.caller, user, q.URL); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
