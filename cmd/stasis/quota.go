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
	Set  map[string]string `arg:"" optional:"" help:"Quotas to set, such as sessions=4 bytes=none; none removes one."`
}

// Run sets quotas, if some are given, and prints how much of each the user uses.
func (c *userQuotaCmd) Run(ctx context.Context) error {
	quotas, err := quotaChanges(c.Set)
	if err != nil {
		return err
	}
	use, err := c.api().UserQuotas(ctx, c.User)
	if err == nil && len(quotas) > 0 {
		use, err = c.api().SetUserQuotas(ctx, c.User, quotas)
	}
	if err != nil {
		return c.explain(err)
	}
	return c.print(use, func() error { return printUse(use) })
}

type keyQuotaCmd struct {
	remoteDaemon
	printed
	ID  string            `arg:"" help:"The key's ID."`
	Set map[string]string `arg:"" optional:"" help:"Quotas to set, such as sessions=4 bytes=none; none removes one."`
}

// Run sets quotas, if some are given, and prints how much of each the key uses.
func (c *keyQuotaCmd) Run(ctx context.Context) error {
	quotas, err := quotaChanges(c.Set)
	if err != nil {
		return err
	}
	use, err := c.api().SetKeyQuotas(ctx, c.ID, quotas)
	if err != nil {
		return c.explain(err)
	}
	return c.print(use, func() error { return printUse(use) })
}

// quotaChanges reads quotas by name. The value none removes one.
func quotaChanges(given map[string]string) (client.Quotas, error) {
	changes, numbers := client.Quotas{}, map[string]int64{}
	for name, text := range given {
		if text == "none" {
			changes[name], numbers[name] = nil, 1
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, exitError{exitUsage, fmt.Sprintf("%s: must be a number or none, not %s", name, text)}
		}
		changes[name], numbers[name] = &n, n
	}
	_, err := quotasOf("QUOTA", numbers)
	return changes, err
}

// printUse prints a line for each quota.
func printUse(use map[string]client.Used) error {
	t := newTable("QUOTA", "USED", "LIMIT")
	for _, name := range quota.Names() {
		u, is := use[string(name)]
		if !is {
			continue
		}
		limit := "none"
		if u.Limit != nil {
			limit = strconv.FormatInt(*u.Limit, 10)
		}
		t.row(string(name), strconv.FormatInt(u.Used, 10), limit)
	}
	return t.Flush()
}
