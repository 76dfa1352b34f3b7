package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/session/quota"
)

type userQuotaCmd struct {
	remoteDaemon
	printed
	User string            `arg:"" help:"The user's ID."`
	Set  map[string]string `arg:"" optional:"" help:"Quotas to set, such as sessions=4 bytes=default; default removes the user's own, so that the daemon's applies."`
}

// Words that remove a quota.
const (
	daemonQuota = "default" // of a user: the daemon's applies
	noQuota     = "none"    // of a key: there is no limit beside its user's
)

// Run sets quotas, if some are given, and prints how much of each the user uses.
func (c *userQuotaCmd) Run(ctx context.Context) error {
	quotas, err := quotaChanges(c.Set, daemonQuota, "default for the daemon's quota, or a number")
	if err != nil {
		return err
	}
	if len(quotas) > 0 {
		if _, err := c.api().SetUserQuotas(ctx, c.User, quotas); err != nil {
			return c.explain(err)
		}
	}
	own, use, err := c.api().UserQuotas(ctx, c.User)
	if err != nil {
		return c.explain(err)
	}
	return c.print(use, func() error {
		return printUse(use, func(name string) string {
			if own[name] != nil {
				return "user"
			}
			return "daemon's default"
		})
	})
}

type keyQuotaCmd struct {
	remoteDaemon
	printed
	ID  string            `arg:"" help:"The key's ID."`
	Set map[string]string `arg:"" optional:"" help:"Quotas to set, such as sessions=4 bytes=none; none removes one."`
}

// Run sets quotas, if some are given, and prints how much of each the key uses.
func (c *keyQuotaCmd) Run(ctx context.Context) error {
	quotas, err := quotaChanges(c.Set, noQuota, "a number, or none for no limit")
	if err != nil {
		return err
	}
	use, err := c.api().SetKeyQuotas(ctx, c.ID, quotas)
	if err != nil {
		return c.explain(err)
	}
	return c.print(use, func() error { return printUse(use, func(string) string { return "key" }) })
}

// quotaChanges reads quotas by name. The word removes one; allowed says what a value can be.
func quotaChanges(given map[string]string, word, allowed string) (client.Quotas, error) {
	changes, numbers := client.Quotas{}, map[string]int64{}
	for name, text := range given {
		if text == word {
			changes[name], numbers[name] = nil, 1
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, exitError{exitUsage, fmt.Sprintf("%s: must be %s, not %s", name, allowed, text)}
		}
		changes[name], numbers[name] = &n, n
	}
	_, err := quotasOf("QUOTA", numbers)
	return changes, err
}

// printUse prints a line for each quota. setBy says whose a limit is.
func printUse(use map[string]client.Used, setBy func(name string) string) error {
	t := newTable("QUOTA", "USED", "LIMIT", "SET BY")
	for _, name := range quota.Names() {
		u, is := use[string(name)]
		if !is {
			continue
		}
		limit, by := "none", ""
		if u.Limit != nil {
			limit, by = strconv.FormatInt(*u.Limit, 10), setBy(string(name))
		}
		t.row(string(name), strconv.FormatInt(u.Used, 10), limit, by)
	}
	return t.Flush()
}
