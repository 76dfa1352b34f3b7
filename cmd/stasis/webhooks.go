//go:build linux

package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events/webhook"
)

// webhookFlags say where webhooks are sent and which secret signs them.
type webhookFlags struct {
	WebhookURL          secretText `help:"Receives the webhooks of every session, in addition to the webhook_url of its create." name:"webhook-url" placeholder:"URL"`
	WebhookSecretFile   string     `help:"File with the secret that webhooks are signed with; by default STASIS_WEBHOOK_SECRET, else one is made in DIR/webhook-secret." placeholder:"FILE"`
	WebhookAllowPrivate bool       `help:"Send webhooks to private and loopback addresses too."`
}

const (
	webhookSecretVariable = "STASIS_WEBHOOK_SECRET"
	webhookSecretFile     = "webhook-secret"
)

func (f *webhookFlags) check() error {
	_, err := webAddress(f.WebhookURL).parse("--webhook-url")
	return err
}

// secret reads the secret that signs webhooks, or makes one.
func (f *webhookFlags) secret(dir string) (webhook.Secret, error) {
	const op = "serve.webhook"
	file := f.WebhookSecretFile
	if given := os.Getenv(webhookSecretVariable); given != "" && file == "" {
		return webhook.ParseSecret(given)
	}
	made := file == ""
	if made {
		file = filepath.Join(dir, webhookSecretFile)
	}
	raw, err := os.ReadFile(file)
	switch {
	case err == nil:
		secret, err := webhook.ParseSecret(string(raw))
		if err != nil {
			return nil, fault.Wrap(err, fault.Config, op, file+": "+fault.MessageOf(err))
		}
		return secret, nil
	case !made || !errors.Is(err, fs.ErrNotExist):
		return nil, fault.Wrap(err, fault.Config, op, "the file of the webhook secret cannot be read")
	}
	secret := webhook.NewSecret()
	if err := renameio.WriteFile(file, []byte(secret.Text()+"\n"), 0o600); err != nil {
		return nil, fault.Wrap(err, fault.Config, op, "the file of the webhook secret cannot be written")
	}
	return secret, nil
}

// sender starts to send webhooks; stop ends it. policy is that of browsers; without
// --webhook-allow-private it allows only public addresses and the listed ones.
func (f *webhookFlags) sender(ctx context.Context, secrets *webhook.Receivers, policy egress.Policy, queue webhook.Queue, log *slog.Logger) (s *webhook.Sender, stop func() error) {
	policy.Private = f.WebhookAllowPrivate
	s = webhook.New(webhook.Options{Queue: queue, Secrets: secrets, Egress: policy, Now: time.Now, Log: log})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	return s, func() error { cancel(); running.Wait(); return nil }
}

// receivers returns the secrets of receivers, with the daemon's own.
func (f *webhookFlags) receivers(secret webhook.Secret, store profiles.WebhookSecretStore, sealer webhook.Sealer) *webhook.Receivers {
	return webhook.NewReceivers(webhook.ReceiversConfig{Store: store, Sealer: sealer, Daemon: secret, Operator: string(f.WebhookURL), Now: time.Now})
}
