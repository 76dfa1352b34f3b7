package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

type sessionLogsCmd struct {
	remoteDaemon
	printed
	Session string `arg:"" help:"The session's ID."`
	RunID   string `help:"Only this run; by default the newest one." name:"run" placeholder:"ID" env:"-"`
}

// runEvent is an event of a run.
type runEvent struct {
	Sequence  int64           `json:"sequence"`
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// Run prints a line for each event: its time, its type and its data. With --json it prints one
// event in each line.
func (c *sessionLogsCmd) Run(ctx context.Context) error {
	run := c.RunID
	if run == "" {
		var list struct {
			Runs []struct {
				ID string `json:"run_id"`
			} `json:"runs"`
		}
		if err := c.get(ctx, sessionPath(c.Session)+"/runs", &list); err != nil {
			return err
		}
		if len(list.Runs) == 0 {
			return nil
		}
		run = list.Runs[len(list.Runs)-1].ID
	}
	for after := int64(0); ; {
		var page struct {
			Events []json.RawMessage `json:"events"`
			Next   *int64            `json:"next_after_sequence"`
		}
		if err := c.get(ctx, fmt.Sprintf("%s/runs/%s/events?limit=1000&after=%d", sessionPath(c.Session), run, after), &page); err != nil {
			return err
		}
		for _, raw := range page.Events {
			if err := c.print(raw); err != nil {
				return err
			}
		}
		if page.Next == nil || *page.Next <= after {
			return nil
		}
		after = *page.Next
	}
}

func (c *sessionLogsCmd) print(raw json.RawMessage) error {
	if c.JSON {
		_, err := fmt.Fprintln(os.Stdout, string(raw))
		return err
	}
	var e runEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	_, err := fmt.Fprintf(os.Stdout, "%s  %-19s %s\n", e.Timestamp.Local().Format("15:04:05.000"), e.Type, dataLine(e.Data))
	return err
}

// dataLine returns the data of an event in one line: NAME=VALUE, sorted. Long values are cut.
func dataLine(raw json.RawMessage) string {
	var data map[string]any
	if json.Unmarshal(raw, &data) != nil {
		return ""
	}
	var parts []string
	for name, value := range data {
		text, err := json.Marshal(value)
		if err != nil || name == "jpeg" {
			continue
		}
		if len(text) > longestValue {
			text = append(text[:longestValue:longestValue], "…"...)
		}
		parts = append(parts, name+"="+string(text))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// longestValue bounds a value in a line of the log, in bytes.
const longestValue = 200

type sessionExecCmd struct {
	remoteDaemon
	Session string   `arg:"" help:"The session's ID."`
	Command []string `arg:"" help:"The program and its arguments, after --." passthrough:""`
}

// Run runs a program with STASIS_SESSION_ID and STASIS_CDP_URL in its environment, and exits
// with its exit code. It does not end the session.
func (c *sessionExecCmd) Run(ctx context.Context) error {
	s, err := c.api().Session(ctx, c.Session)
	if err != nil {
		return c.explain(err)
	}
	if s.CDPURL == "" {
		return exitError{exitFailed, "the session is " + s.Status + "; resume it, or create another"}
	}
	args := c.Command
	if args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return exitError{exitUsage, "COMMAND: is missing; give a program after --"}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the person names the program
	cmd.Env = append(os.Environ(), "STASIS_SESSION_ID="+s.ID, "STASIS_CDP_URL="+s.CDPURL)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exited *exec.ExitError
	if errors.As(err, &exited) && exited.ExitCode() > 0 {
		return exitError{exited.ExitCode(), fmt.Sprintf("%s ended with exit code %d", args[0], exited.ExitCode())}
	}
	if err != nil {
		return exitError{exitFailed, err.Error()}
	}
	return nil
}
