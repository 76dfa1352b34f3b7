package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/stasisd/stasis/client"
)

// keyCmd holds the verbs for the API keys of a running daemon.
type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make a key and print its secret, which is shown only now: KEY=$(stasis key create NAME)."`
	List   keyListCmd   `cmd:"" help:"List the keys, oldest first."`
	Rotate keyRotateCmd `cmd:"" help:"Give a key a new secret and print it, which is shown only now."`
	Quota  keyQuotaCmd  `cmd:"" help:"Show how much a key uses of each quota, and set quotas."`
	Show   keyShowCmd   `cmd:"" help:"Show whose key this command uses, and its rights."`
	Delete keyDeleteCmd `cmd:"" help:"Delete a key, and close what is open with it."`
}

type keyCreateCmd struct {
	remoteDaemon
	printed
	User     string           `help:"The user that the key acts for; by default that of the key of this command." env:"-"`
	AllUsers bool             `help:"The key may act for every user." env:"-"`
	Rights   []string         `help:"What the key may do: use, view, create, restore, secrets, admin. By default use." placeholder:"RIGHT,…" env:"-"`
	Expires  *period          `help:"After which time the key stops working, such as 30d; by default never." placeholder:"TIME" env:"-"`
	Networks []string         `help:"The networks or addresses that the key may be used from; by default all." placeholder:"CIDR,…" env:"-"`
	Quota    map[string]int64 `help:"What the key may have at once, such as sessions=2,requests_per_second=20; by default only what its user may." placeholder:"NAME=N,…" mapsep:"," env:"-"`
	Name     string           `arg:"" help:"A name for the key, for people."`
}

// Run makes a key. Standard output has only the secret, so that a script can keep it in a
// variable. Standard error says what the key may do.
func (c *keyCreateCmd) Run(ctx context.Context) error {
	o := client.KeyOptions{Name: c.Name, UserID: c.User, AllUsers: c.AllUsers, Rights: c.Rights, Networks: c.Networks}
	if c.Expires != nil {
		at := time.Now().Add(c.Expires.Duration()).UTC()
		o.ExpiresAt = &at
	}
	if _, err := quotasOf("--quota", c.Quota); err != nil {
		return err
	}
	for name, n := range c.Quota {
		if o.Quotas == nil {
			o.Quotas = client.Quotas{}
		}
		o.Quotas[name] = &n
	}
	var k client.Key
	return c.show(ctx, &c.remoteDaemon, http.MethodPost, "/v1/keys", o, &k, func() error {
		_, _ = fmt.Fprintf(os.Stderr, "Key %s acts for %s, with the rights %s. Its secret is printed only now.\n", k.ID, actsFor(&k), strings.Join(k.Rights, ", "))
		_, err := fmt.Fprintln(os.Stdout, k.Secret)
		return err
	})
}

type keyRotateCmd struct {
	remoteDaemon
	printed
	Overlap period `help:"How long the former secret stays valid, at most 30d." default:"0s" placeholder:"TIME" env:"-"`
	ID      string `arg:"" help:"The key's ID."`
}

// Run gives a key a new secret. Standard output has only the secret, as for create.
func (c *keyRotateCmd) Run(ctx context.Context) error {
	k, err := c.api().RotateKey(ctx, c.ID, c.Overlap.Duration())
	if err != nil {
		return c.explain(err)
	}
	return c.print(k, func() error {
		former := "is no longer valid"
		if k.FormerSecretUntil != nil {
			former = "is valid until " + local(k.FormerSecretUntil)
		}
		_, _ = fmt.Fprintf(os.Stderr, "Key %s has a new secret, which is printed only now. The former one %s.\n", k.ID, former)
		_, err := fmt.Fprintln(os.Stdout, k.Secret)
		return err
	})
}

// actsFor names the users that a key acts for.
func actsFor(k *client.Key) string {
	if k.AllUsers {
		return "all users"
	}
	return "user " + printable(k.UserID)
}

type keyListCmd struct {
	remoteDaemon
	printed
}

// Run prints a line for each key.
func (c *keyListCmd) Run(ctx context.Context) error {
	keys, err := c.api().Keys(ctx)
	if err != nil {
		return c.explain(err)
	}
	return c.print(keys, func() error {
		t := newTable("ID", "CREATED", "LAST USED", "EXPIRES", "RIGHTS", "USER", "ALL USERS", "NETWORKS", "NAME")
		for _, k := range keys {
			t.row(k.ID, local(&k.CreatedAt), local(k.LastUsedAt), local(k.ExpiresAt), strings.Join(k.Rights, ", "), k.UserID, yesNo(k.AllUsers), strings.Join(k.Networks, ", "), k.Name)
		}
		return t.Flush()
	})
}

type keyShowCmd struct {
	remoteDaemon
	printed
}

// Run prints the key of this command, without its secret.
func (c *keyShowCmd) Run(ctx context.Context) error {
	var k struct {
		client.Key
		ID string `json:"key_id"`
	}
	return c.show(ctx, &c.remoteDaemon, http.MethodGet, "/v1/me", nil, &k, func() error {
		return fields("key", k.ID, "user", k.UserID, "all users", yesNo(k.AllUsers), "rights", strings.Join(k.Rights, ", "))
	})
}

type keyDeleteCmd struct {
	remoteDaemon
	ID string `arg:"" help:"The key's ID."`
}

// Run deletes a key.
func (c *keyDeleteCmd) Run(ctx context.Context) error { return c.explain(c.api().DeleteKey(ctx, c.ID)) }
