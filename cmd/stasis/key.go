package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/stasisd/stasis/client"
)

// keyCmd holds the verbs for the API keys of a running daemon.
type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make a key and print its secret, which is shown only now: KEY=$(stasis key create NAME)."`
	List   keyListCmd   `cmd:"" help:"List the keys, oldest first."`
	Show   keyShowCmd   `cmd:"" help:"Show whose key this command uses, and its rights."`
	Delete keyDeleteCmd `cmd:"" help:"Delete a key, and close what is open with it."`
}

type keyCreateCmd struct {
	remoteDaemon
	printed
	User     string   `help:"The user that the key acts for; by default that of the key of this command." env:"-"`
	AllUsers bool     `help:"The key may act for every user." env:"-"`
	Rights   []string `help:"What the key may do: use, view, create, restore, secrets, admin. By default use." placeholder:"RIGHT,…" env:"-"`
	Name     string   `arg:"" help:"A name for the key, for people."`
}

// Run makes a key. Standard output has only the secret, so that a script can keep it in a
// variable. Standard error says what the key may do.
func (c *keyCreateCmd) Run(ctx context.Context) error {
	o := client.KeyOptions{Name: c.Name, UserID: c.User, AllUsers: c.AllUsers, Rights: c.Rights}
	var k client.Key
	return c.show(ctx, &c.remoteDaemon, http.MethodPost, "/v1/keys", o, &k, func() error {
		_, _ = fmt.Fprintf(os.Stderr, "Key %s acts for %s, with the rights %s. Its secret is printed only now.\n", k.ID, actsFor(&k), strings.Join(k.Rights, ", "))
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
		t := newTable("ID", "CREATED", "RIGHTS", "USER", "ALL USERS", "NAME")
		for _, k := range keys {
			t.row(k.ID, local(&k.CreatedAt), strings.Join(k.Rights, ", "), k.UserID, yesNo(k.AllUsers), k.Name)
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
