package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// loginCmd lets a person log in by hand, in the live view, and saves the login.
type loginCmd struct {
	remoteDaemon
	User  string `help:"User whose default environment gets the login; by default the key's user." env:"-"`
	Fresh bool   `help:"Start with an empty environment instead of the user's default." env:"-"`
	Site  string `arg:"" help:"The address to log in at, such as https://example.com/login."`
}

// loginIdle is how long the session waits for a person before it ends, in seconds.
const loginIdle = 3600

// endedPoll is the time between two checks that the session is live.
const endedPoll = 2 * time.Second

// Run opens a session, prints the address of its live view and waits. Enter saves the
// session as the user's default. An interruption discards it.
func (c *loginCmd) Run(ctx context.Context) error {
	user, err := c.user(ctx)
	if err != nil {
		return err
	}
	site := c.Site
	if !strings.Contains(site, "://") {
		site = "https://" + site
	}
	create := map[string]any{"user_id": user, "start_url": site, "idle_timeout_seconds": loginIdle}
	if !c.Fresh {
		create["restore_default_environment_from_user_id"], create["if_missing"] = user, "fresh"
	}
	var s loginSession
	if err := c.callJSON(ctx, http.MethodPost, "/v1/sessions", create, &s); err != nil {
		return err
	}
	if s.AgentURL == "" {
		_ = c.end(ctx, s.ID, nil, nil) // the error below is what counts
		return exitError{exitUsage, "--key: the key may not drive sessions of " + user}
	}
	fmt.Printf("Open this address in a browser and log in:\n\n  %s\n\nPress Enter to save the session as the default of %s. Press Ctrl-C to discard it.\n", s.AgentURL, user)
	if err := c.await(ctx, s.ID); err != nil {
		late := context.WithoutCancel(ctx)
		if failed := c.end(late, s.ID, nil, nil); failed != nil && ctx.Err() != nil {
			return failed
		}
		return interrupted(ctx, err, "the session was discarded; nothing was saved")
	}
	return c.save(ctx, s.ID, user)
}

// loginSession is the part of a session's answer that this verb uses.
type loginSession struct {
	ID       string  `json:"session_id"`
	AgentURL string  `json:"agent_url"`
	EndedAt  *string `json:"ended_at"`
}

// user returns --user, or the user of the key.
func (c *loginCmd) user(ctx context.Context) (string, error) {
	if c.User != "" {
		return c.User, nil
	}
	var me struct {
		UserID string `json:"user_id"`
	}
	return me.UserID, c.call(ctx, http.MethodGet, "/v1/me", nil, &me)
}

// await returns when the person has pressed Enter. It fails when standard input ends or is
// no terminal's, when the session ends, and when ctx ends.
func (c *loginCmd) await(ctx context.Context, id string) error {
	line := make(chan error, 1)
	go func() { // outlives await only if the process ends
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		line <- err
	}()
	again := time.NewTicker(endedPoll)
	defer again.Stop()
	for {
		select {
		case err := <-line:
			if err == io.EOF {
				return exitError{exitFailed, "the input ended before Enter; the session was discarded, nothing was saved"}
			}
			return err
		case <-again.C:
			var s loginSession
			if err := c.call(ctx, http.MethodGet, "/v1/sessions/"+url.PathEscape(id), nil, &s); err != nil {
				return err
			}
			if s.EndedAt != nil {
				return exitError{exitFailed, "the session has ended before it was saved"}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// save ends the session, makes it the user's default and prints what was saved.
func (c *loginCmd) save(ctx context.Context, id, user string) error {
	var ended struct {
		Snapshot struct {
			ID     string
			Logins []struct {
				Site        string
				ExpectedEnd *time.Time `json:"expected_end"`
				Expired     bool
			}
		}
		Default *struct {
			Moved   bool
			Version int
		}
	}
	// The person has just logged in, so this environment is the newest.
	query := url.Values{"save_snapshot_mode": {"filesystem"}, "save_as_default": {"true"}, "default_conflict": {"overwrite"}}
	if err := c.end(ctx, id, query, &ended); err != nil {
		return err
	}
	if d := ended.Default; d == nil || !d.Moved {
		return exitError{exitFailed, "the session was saved as snapshot " + ended.Snapshot.ID + ", but it did not become the default of " + user}
	}
	fmt.Printf("Saved as version %d of the default of %s.\n", ended.Default.Version, user)
	if len(ended.Snapshot.Logins) == 0 {
		fmt.Println("No login was recognised in it. If you did log in, restore the default and look.")
	}
	for _, l := range ended.Snapshot.Logins {
		until := "end unknown"
		switch {
		case l.Expired:
			until = "has expired"
		case l.ExpectedEnd != nil:
			until = "until about " + l.ExpectedEnd.Local().Format(time.DateTime)
		}
		fmt.Printf("  %s: %s\n", l.Site, until)
	}
	return nil
}

// end ends the session. The query says how it is saved; without one it is discarded.
func (c *loginCmd) end(ctx context.Context, id string, query url.Values, out any) error {
	path := "/v1/sessions/" + url.PathEscape(id) + "?" + query.Encode()
	return c.call(ctx, http.MethodDelete, strings.TrimSuffix(path, "?"), nil, out)
}
