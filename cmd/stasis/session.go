package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/client"
)

// sessionCmd holds the verbs for the sessions of a running daemon.
type sessionCmd struct {
	Create sessionCreateCmd `cmd:"" help:"Start a browser, empty or with a saved environment."`
	List   sessionListCmd   `cmd:"" help:"List sessions, newest first."`
	Show   sessionShowCmd   `cmd:"" help:"Show a session: its addresses, what it restored, how it ended."`
	Open   sessionOpenCmd   `cmd:"" help:"Open the live view of a session in this machine's browser."`
	Save   sessionSaveCmd   `cmd:"" help:"Save a session without ending it."`
	End    sessionEndCmd    `cmd:"" help:"End a session; without --save what it did is discarded."`
	Resume sessionResumeCmd `cmd:"" help:"Continue a session that was paused or has ended."`
	Logs   sessionLogsCmd   `cmd:"" help:"Print what happened in a session: navigations, dialogs, downloads, saves."`
	Exec   sessionExecCmd   `cmd:"" help:"Run a program that drives a session, with its address in the environment."`
}

type sessionCreateCmd struct {
	remoteDaemon
	printed
	User      string            `help:"User who owns the session." env:"-"`
	DefaultOf string            `help:"Restore the default environment of this user." placeholder:"USER" env:"-"`
	From      string            `help:"Restore a snapshot, or the newest one of a session, by its ID." placeholder:"ID" env:"-"`
	Fresh     bool              `help:"Start with an empty environment if there is nothing to restore." env:"-"`
	ID        string            `help:"The session's ID; by default a new UUID." env:"-"`
	Engine    string            `help:"Engine: chrome or shell." env:"-"`
	StartURL  string            `help:"A page to open at once." name:"start-url" placeholder:"URL" env:"-"`
	Context   string            `help:"What contexts are that clients create: new, or environment." env:"-"`
	Persist   bool              `help:"Save the session however it ends, as the user's default." env:"-"`
	ReadOnly  bool              `help:"Never save the session." env:"-"`
	Webhook   string            `help:"A URL that gets the session's events." placeholder:"URL" env:"-"`
	Label     map[string]string `help:"A label, as NAME=VALUE; may be repeated." env:"-"`
}

// Run starts a session. It prints its ID and addresses.
func (c *sessionCreateCmd) Run(ctx context.Context) error {
	o := client.CreateOptions{SessionID: c.ID, UserID: c.User, FromDefaultOf: c.DefaultOf, FromEnvironment: c.From, Engine: c.Engine,
		StartURL: c.StartURL, DefaultContext: c.Context, Persist: c.Persist, ReadOnly: c.ReadOnly, WebhookURL: c.Webhook, Labels: c.Label}
	if c.Fresh {
		o.IfMissing = "fresh"
	}
	var s client.Session
	return c.show(ctx, &c.remoteDaemon, http.MethodPost, "/v1/sessions", o, &s, func() error { return showSession(&s) })
}

type sessionListCmd struct {
	remoteDaemon
	printed
	User   string `help:"List only this user's sessions." env:"-"`
	Status string `help:"List only sessions with this status: ready, running, paused, completed, terminated or error." env:"-"`
	Limit  int    `help:"List at most this many; 0 lists all." default:"50" env:"-"`
}

// Run prints a line for each session.
func (c *sessionListCmd) Run(ctx context.Context) error {
	var missing []string
	list, err := take(c.Limit, c.api().Sessions(ctx, client.ListSessions{Status: c.Status, UserID: c.User, Missing: func(nodes []string) {
		missing = append(missing, nodes...)
	}}))
	if err != nil {
		return c.explain(err)
	}
	slices.Sort(missing)
	for _, node := range slices.Compact(missing) {
		_, _ = fmt.Fprintf(os.Stderr, "node %s has not answered: its live sessions are listed without their addresses, clients and memory\n", printable(node))
	}
	return c.print(list, func() error {
		heading := []string{"ID", "STATUS", "USER", "ENGINE", "STARTED", "CLIENTS", "MEMORY"}
		cluster := slices.ContainsFunc(list, func(s client.Session) bool { return s.NodeID != "" })
		if cluster {
			heading = append(heading, "NODE")
		}
		t := newTable(heading...)
		for _, s := range list {
			clients, memory := "", ""
			if s.Usage != nil {
				clients = strconv.Itoa(s.Usage.Clients)
				if s.Usage.MemoryBytes > 0 {
					memory = size(s.Usage.MemoryBytes)
				}
			}
			row := []string{s.ID, s.Status, s.UserID, s.Engine, local(&s.CreatedAt), clients, memory}
			if cluster {
				row = append(row, s.NodeID)
			}
			t.row(row...)
		}
		return t.Flush()
	})
}

type sessionShowCmd struct {
	remoteDaemon
	printed
	Session string `arg:"" help:"The session's ID."`
}

// Run prints a session.
func (c *sessionShowCmd) Run(ctx context.Context) error {
	var s client.Session
	return c.show(ctx, &c.remoteDaemon, http.MethodGet, sessionPath(c.Session), nil, &s, func() error { return showSession(&s) })
}

// showSession prints a session for people.
func showSession(s *client.Session) error {
	restored, outcome := "", ""
	if r := s.Restored; r != nil {
		restored = fmt.Sprintf("snapshot %s, %s in %d ms, verification %s", r.SnapshotID, r.Path, r.DurationMS, r.Verification)
		for _, w := range r.Warnings {
			restored += "\n  " + w
		}
	}
	if s.Outcome != nil {
		outcome = s.Outcome.Message
	}
	return fields("session", s.ID, "status", s.Status, "reason", s.Reason, "user", s.UserID, "engine", s.Engine, "node", s.NodeID, "started", local(&s.CreatedAt),
		"ends at the latest", endsAt(s), "ended", local(s.EndedAt), "restored", restored, "outcome", outcome, "CDP", s.CDPURL, "live view", s.ControlURL, "view only", s.ViewURL)
}

// endsAt returns when the lifetime of a live session ends; "" for an ended one.
func endsAt(s *client.Session) string {
	if s.EndedAt != nil {
		return ""
	}
	return local(&s.ExpiresAt)
}

type sessionOpenCmd struct {
	remoteDaemon
	Session  string `arg:"" help:"The session's ID."`
	ViewOnly bool   `help:"Open it without control." env:"-"`
}

// Run opens the live view, or prints its address where there is no desktop.
func (c *sessionOpenCmd) Run(ctx context.Context) error {
	s, err := c.api().Session(ctx, c.Session)
	if err != nil {
		return c.explain(err)
	}
	link := s.ControlURL
	if c.ViewOnly || link == "" {
		link = s.ViewURL
	}
	if s.EndedAt != nil {
		return exitError{exitFailed, "the session is " + s.Status + "; resume it, or create another"}
	}
	if onDesktop() {
		closed, err := openLink(ctx, link)
		if closed != nil {
			defer closed()
			_, _ = fmt.Fprintln(os.Stderr, "The live view opens in your browser.")
			select {
			case <-time.After(openedFor): // the browser reads the file meanwhile
			case <-ctx.Done():
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(os.Stdout, link)
	return err
}

// openedFor is how long the file that leads a browser to a link is kept.
const openedFor = 5 * time.Second

type sessionResumeCmd struct {
	remoteDaemon
	printed
	Session string `arg:"" help:"The session's ID."`
}

// Run resumes a session and prints it.
func (c *sessionResumeCmd) Run(ctx context.Context) error {
	if err := c.callJSON(ctx, http.MethodPost, sessionPath(c.Session)+"/resume", nil, nil); err != nil {
		return err
	}
	return (&sessionShowCmd{c.remoteDaemon, c.printed, c.Session}).Run(ctx)
}

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }

// labelled returns text with a label before it; "" for no text.
func labelled(label, text string) string {
	if text == "" {
		return ""
	}
	return strings.TrimSpace(label + " " + text)
}
