package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/stasisd/stasis/client"
)

type sessionSaveCmd struct {
	remoteDaemon
	printed
	Session   string `arg:"" help:"The session's ID."`
	Default   bool   `help:"Make the snapshot the user's default." env:"-"`
	Overwrite bool   `help:"With --default: also if the default has moved meanwhile." env:"-"`
	Label     string `help:"A label for the snapshot, which the retention policy can keep." env:"-"`
}

// Run saves a session and prints the snapshot's ID and its logins.
func (c *sessionSaveCmd) Run(ctx context.Context) error {
	o := client.CheckpointOptions{SaveAsDefault: c.Default, Label: c.Label}
	if c.Overwrite {
		o.Conflict = "overwrite"
	}
	var done client.EndResult
	err := c.show(ctx, &c.remoteDaemon, http.MethodPost, sessionPath(c.Session)+"/snapshots", o, &done, func() error { return showEnd(&done) })
	if err == nil && done.Code != "" {
		return defaultKept
	}
	return err
}

// defaultKept is the error for a session that is saved, and a default that has moved since the
// session started from it.
var defaultKept = exitError{exitFailed, "the default did not move; repeat the command with --overwrite to move it"}

type sessionEndCmd struct {
	remoteDaemon
	printed
	Session   string `arg:"" help:"The session's ID."`
	Save      bool   `help:"Save its environment." env:"-"`
	Memory    bool   `help:"Save it, and keep its Chrome frozen for a fast restore." env:"-"`
	Default   bool   `help:"Save it as the user's default." env:"-"`
	Overwrite bool   `help:"With --default: also if the default has moved meanwhile." env:"-"`
}

// Run ends a session.
func (c *sessionEndCmd) Run(ctx context.Context) error {
	o := client.EndOptions{SaveAsDefault: c.Default}
	switch {
	case c.Memory:
		o.Mode = "memory"
	case c.Save, c.Default:
		o.Mode = "filesystem"
	}
	if c.Overwrite {
		o.Conflict = "overwrite"
	}
	var done client.EndResult
	err := c.show(ctx, &c.remoteDaemon, http.MethodDelete, client.EndPath(c.Session, o), nil, &done, func() error { return showEnd(&done) })
	if kept := client.Kept(err); kept != nil {
		if err := c.print(kept, func() error { return showEnd(kept) }); err != nil {
			return err
		}
		return defaultKept
	}
	return err
}

// showEnd prints the outcome of a save or an end.
func showEnd(e *client.EndResult) error {
	message := e.Message
	if e.UndoUntil != nil {
		message = strings.Replace(message, "undo_until", local(e.UndoUntil), 1)
	}
	if _, err := fmt.Fprintln(os.Stdout, flagWords.Replace(message)); err != nil {
		return err
	}
	if e.Snapshot == nil {
		return nil
	}
	version := ""
	if e.Default != nil && e.Default.Moved {
		version = fmt.Sprintf("version %d", e.Default.Version)
	}
	return fields("snapshot", e.Snapshot.ID, "default", version, "logins", logins(e.Snapshot), "warnings", strings.Join(e.Snapshot.Warnings, "\n  "))
}

// logins lists the sites of a snapshot that look logged in.
func logins(s *client.Snapshot) string {
	var sites []string
	for _, l := range s.Logins {
		until := "end unknown"
		switch {
		case l.Expired:
			until = "expired"
		case l.ExpectedEnd != nil:
			until = "until " + local(l.ExpectedEnd)
		}
		sites = append(sites, l.Site+" ("+until+")")
	}
	return strings.Join(sites, ", ")
}
