package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/stasisd/stasis/client"
)

// webhookSecretCmd holds the verbs for the secrets of receivers of webhooks.
type webhookSecretCmd struct {
	Set    webhookSecretSetCmd    `cmd:"" help:"Give a receiver a new secret and print it, which is shown only now."`
	List   webhookSecretListCmd   `cmd:"" help:"List the receivers that have their own secret."`
	Delete webhookSecretDeleteCmd `cmd:"" help:"Remove the secret of a receiver."`
}

type webhookSecretSetCmd struct {
	remoteDaemon
	printed
	User    string `help:"The user whose sessions name the receiver; by default that of the key of this command." env:"-"`
	Overlap period `help:"How long the present secret signs too, at most 30d." default:"0s" placeholder:"TIME" env:"-"`
	File    string `help:"A file with the secret; by default the daemon makes one." placeholder:"FILE" env:"-"`
	URL     string `arg:"" optional:"" help:"The receiver, as in the webhook_url of sessions; without it, all receivers of the user without their own secret."`
}

// Run sets the secret. Standard output has only a secret that the daemon made, so that a
// script can keep it in a variable.
func (c *webhookSecretSetCmd) Run(ctx context.Context) error {
	o := client.WebhookSecretOptions{UserID: c.User, URL: c.URL, Overlap: c.Overlap.Duration()}
	if c.File != "" {
		raw, err := os.ReadFile(c.File)
		if err != nil {
			return exitError{exitUsage, fmt.Sprintf("--file: cannot be read: %v", err)}
		}
		o.Secret = strings.TrimSpace(string(raw))
	}
	s, err := c.api().SetWebhookSecret(ctx, o)
	if err != nil {
		return c.explain(err)
	}
	return c.print(s, func() error {
		_, _ = fmt.Fprintf(os.Stderr, "The webhooks of user %s to %s are signed with the new secret.\n", printable(s.UserID), receiverName(s))
		if s.Secret == "" {
			return nil
		}
		_, err := fmt.Fprintln(os.Stdout, s.Secret)
		return err
	})
}

// receiverName names a receiver without its query, which can be a secret.
func receiverName(s *client.WebhookSecret) string {
	if s.URL == "" {
		return "all other receivers"
	}
	return shownURL(s.URL)
}

type webhookSecretListCmd struct {
	remoteDaemon
	printed
	User string `help:"Only those of this user." env:"-"`
}

// Run prints a line for each receiver.
func (c *webhookSecretListCmd) Run(ctx context.Context) error {
	list, err := c.api().WebhookSecrets(ctx, c.User)
	if err != nil {
		return c.explain(err)
	}
	return c.print(list, func() error {
		t := newTable("USER", "RECEIVER", "CREATED", "FORMER SECRET UNTIL")
		for _, s := range list {
			t.row(s.UserID, receiverName(&s), local(&s.CreatedAt), local(s.FormerSecretUntil))
		}
		return t.Flush()
	})
}

type webhookSecretDeleteCmd struct {
	remoteDaemon
	User string `help:"The user whose sessions name the receiver; by default that of the key of this command." env:"-"`
	URL  string `arg:"" optional:"" help:"The receiver; without it, the secret for all receivers of the user without their own secret."`
}

// Run removes the secret.
func (c *webhookSecretDeleteCmd) Run(ctx context.Context) error {
	return c.explain(c.api().DeleteWebhookSecret(ctx, c.User, c.URL))
}
