package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/stasisd/stasis/client"
)

// userCmd holds the verbs for users and their default environments.
type userCmd struct {
	List     userListCmd     `cmd:"" help:"List the users that snapshots, live sessions and, if the key has the right admin, keys name, with their defaults."`
	Show     userShowCmd     `cmd:"" help:"Show a user's settings."`
	Default  userDefaultCmd  `cmd:"" help:"Show a user's default environment and its logins."`
	History  userHistoryCmd  `cmd:"" help:"List the versions of a user's default, newest first."`
	Rollback userRollbackCmd `cmd:"" help:"Make an earlier version, or any snapshot, the user's default."`
	Quota    userQuotaCmd    `cmd:"" help:"Show how much a user uses of each quota, and set quotas."`
	Check    userCheckCmd    `cmd:"" help:"Make the user's login check; exit code 1 if the user is not logged in."`
}

type userListCmd struct {
	remoteDaemon
	printed
}

// listedUser is a user of a list.
type listedUser struct {
	User      string `json:"user_id"`
	Snapshots int    `json:"snapshots"`
	Version   int64  `json:"default_version"` // 0: no default
}

// Run lists users. The API has no list of users, so it reads the snapshots, the live sessions and
// the keys. A user that has only settings is not found.
func (c *userListCmd) Run(ctx context.Context) error {
	var order []string
	users := map[string]*listedUser{}
	user := func(id string) *listedUser {
		if users[id] == nil {
			users[id] = &listedUser{User: id}
			order = append(order, id)
		}
		return users[id]
	}
	for s, err := range c.api().Snapshots(ctx, "") {
		if err != nil {
			return c.explain(err)
		}
		user(s.UserID).Snapshots++
	}
	for _, status := range []string{"ready", "running", "paused"} {
		for s, err := range c.api().Sessions(ctx, client.ListSessions{Status: status}) {
			if err != nil {
				return c.explain(err)
			}
			user(s.UserID)
		}
	}
	keys, err := c.api().Keys(ctx)
	if err != nil && code(err) != "forbidden" { // the key has not the right admin
		return c.explain(err)
	}
	for _, k := range keys {
		if !k.AllUsers {
			user(k.UserID)
		}
	}
	list := []*listedUser{}
	for _, id := range order {
		u := users[id]
		if d, err := c.api().Default(ctx, id); err == nil {
			u.Version = d.Version
		} else if code(err) != "default_not_found" {
			return c.explain(err)
		}
		list = append(list, u)
	}
	if c.JSON {
		return printJSON(list)
	}
	t := newTable("USER", "DEFAULT", "SNAPSHOTS")
	for _, u := range list {
		version := "none"
		if u.Version > 0 {
			version = fmt.Sprintf("version %d", u.Version)
		}
		t.row(u.User, version, strconv.Itoa(u.Snapshots))
	}
	return t.Flush()
}

type userShowCmd struct {
	remoteDaemon
	User string `arg:"" help:"The user's ID."`
}

// Run prints the user's settings as the API has them: they have no simpler form.
func (c *userShowCmd) Run(ctx context.Context) error {
	var settings map[string]any
	if err := c.get(ctx, userPath(c.User), &settings); err != nil {
		return err
	}
	return printJSON(settings)
}

type userDefaultCmd struct {
	remoteDaemon
	printed
	User string `arg:"" help:"The user's ID."`
}

// Run prints the default and the logins in its snapshot.
func (c *userDefaultCmd) Run(ctx context.Context) error {
	var d client.Default
	return c.show(ctx, &c.remoteDaemon, http.MethodGet, userPath(c.User)+"/default", nil, &d, func() error {
		s, err := c.api().Snapshot(ctx, d.SnapshotID)
		if err != nil {
			return c.explain(err)
		}
		check := ""
		if o := d.LastCheck; o != nil {
			check = fmt.Sprintf("%s, %s", loggedIn(o), local(&o.CheckedAt))
		}
		return fields("user", d.UserID, "version", strconv.FormatInt(d.Version, 10), "snapshot", d.SnapshotID, "saved by session", d.SessionID,
			"since", local(&d.MovedAt), "logins", logins(s), "last login check", check)
	})
}

type userHistoryCmd struct {
	remoteDaemon
	printed
	User string `arg:"" help:"The user's ID."`
}

// Run prints a line for each version.
func (c *userHistoryCmd) Run(ctx context.Context) error {
	list, err := take(0, c.api().History(ctx, c.User))
	if err != nil {
		return c.explain(err)
	}
	return c.print(list, func() error {
		t := newTable("VERSION", "SINCE", "SNAPSHOT", "SAVED BY SESSION", "AVAILABLE")
		for _, v := range list {
			snapshot, available := v.SnapshotID, yesNo(v.Available)
			if snapshot == "" {
				snapshot, available = "removed", ""
			}
			t.row(strconv.FormatInt(v.Version, 10), local(&v.MovedAt), snapshot, v.SessionID, available)
		}
		return t.Flush()
	})
}

type userRollbackCmd struct {
	remoteDaemon
	User string `arg:"" help:"The user's ID."`
	To   string `arg:"" help:"A version of the history, such as 3, or the ID of a snapshot."`
}

// Run moves the default and prints its new version.
func (c *userRollbackCmd) Run(ctx context.Context) error {
	snapshot := c.To
	if version, err := strconv.ParseInt(c.To, 10, 64); err == nil {
		if snapshot, err = c.snapshotOf(ctx, version); err != nil {
			return err
		}
	}
	d, err := c.api().SetDefault(ctx, c.User, snapshot)
	if err != nil {
		return c.explain(err)
	}
	_, err = fmt.Fprintf(os.Stdout, "The default of %s is snapshot %s now (version %d).\n", d.UserID, d.SnapshotID, d.Version)
	return err
}

// snapshotOf returns the snapshot of a version of the default.
func (c *userRollbackCmd) snapshotOf(ctx context.Context, version int64) (string, error) {
	for v, err := range c.api().History(ctx, c.User) {
		switch {
		case err != nil:
			return "", c.explain(err)
		case v.Version == version && v.SnapshotID == "":
			return "", exitError{exitUsage, fmt.Sprintf("TO: version %d removed the default; give another", version)}
		case v.Version == version:
			return v.SnapshotID, nil
		}
	}
	return "", exitError{exitUsage, fmt.Sprintf("TO: %s has no version %d; see stasis user history", c.User, version)}
}

type userCheckCmd struct {
	remoteDaemon
	printed
	User string `arg:"" help:"The user's ID."`
}

// Run makes the check. Its exit code says what it found.
func (c *userCheckCmd) Run(ctx context.Context) error {
	var o client.LoginOutcome
	err := c.show(ctx, &c.remoteDaemon, http.MethodPost, userPath(c.User)+"/default/check", nil, &o, func() error {
		_, err := fmt.Fprintln(os.Stdout, loggedIn(&o))
		return err
	})
	if err == nil && !c.JSON && !o.LoggedIn {
		return exitError{exitFailed, "the default of " + c.User + " is not logged in"}
	}
	return err
}

// loggedIn describes the outcome of a login check.
func loggedIn(o *client.LoginOutcome) string {
	switch {
	case o.Error != "":
		return "no result: " + o.Error
	case o.LoggedIn:
		return "logged in"
	}
	var failed []string
	for _, c := range o.Conditions {
		if !c.Held {
			failed = append(failed, c.Kind)
		}
	}
	return "logged out: " + strings.Join(failed, ", ") + " " + labelled("at", o.URL)
}

func userPath(id string) string { return "/v1/users/" + url.PathEscape(id) }
