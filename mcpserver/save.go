package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stasisd/stasis/client"
)

type saveInput struct {
	Session   string `json:"session_id" jsonschema:"the session"`
	AsDefault bool   `json:"as_default,omitempty" jsonschema:"make it the user's default: the next start_session of the user restores it"`
	Overwrite bool   `json:"overwrite,omitempty" jsonschema:"with as_default: also if another session has moved the default since this session started"`
	End       bool   `json:"end,omitempty" jsonschema:"end the session after the save; its DevTools port is free when the tool answers"`
	Label     string `json:"label,omitempty" jsonschema:"a label that list_snapshots shows; not together with end"`
}

type saved struct {
	Snapshot string   `json:"snapshot" jsonschema:"the ID of the saved environment"`
	Default  bool     `json:"is_default" jsonschema:"whether it is the user's default now"`
	Message  string   `json:"message" jsonschema:"what happened, and what to do next"`
	Warning  string   `json:"warning,omitempty" jsonschema:"the new default has no site that looks logged in, but the default before it had"`
	Sites    []string `json:"sites" jsonschema:"the sites that look logged in"`
}

func (s *server) save(ctx context.Context, api *client.Client, in saveInput) (saved, error) {
	switch {
	case in.Overwrite && !in.AsDefault:
		return saved{}, errors.New("overwrite: needs as_default: true")
	case in.Label != "" && in.End:
		return saved{}, errors.New("label: a save that ends the session takes no label; call save_session with the label and without end, then end_session")
	}
	done, err := s.saveOrEnd(ctx, api, in)
	if err != nil {
		return saved{}, err
	}
	if done.Snapshot == nil {
		return saved{Message: toolWords(done.Message), Sites: []string{}}, nil
	}
	out := saved{Snapshot: done.Snapshot.ID, Sites: sitesOf(done.Snapshot)}
	if in.AsDefault {
		if out.Default = done.Default != nil && done.Default.Moved; !out.Default { // a repeated call does not move it again
			now, err := api.Default(ctx, done.Snapshot.UserID)
			out.Default = err == nil && now.SnapshotID == out.Snapshot
		}
	}
	if out.Default && len(out.Sites) == 0 {
		out.Warning = lostSites(ctx, api, done.Snapshot)
	}
	out.Message = messageOf(in, done, out.Default)
	return out, nil
}

// saveOrEnd saves the session. A default that was kept because of a conflict is in the result,
// not an error: the environment is saved.
func (s *server) saveOrEnd(ctx context.Context, api *client.Client, in saveInput) (*client.EndResult, error) {
	conflict := ""
	if in.Overwrite {
		conflict = "overwrite"
	}
	if !in.End {
		return api.Checkpoint(ctx, in.Session, client.CheckpointOptions{SaveAsDefault: in.AsDefault, Conflict: conflict, Label: in.Label})
	}
	done, err := api.EndSession(ctx, in.Session, client.EndOptions{Mode: "filesystem", SaveAsDefault: in.AsDefault, Conflict: conflict})
	if kept := client.Kept(err); kept != nil {
		done, err = kept, nil
	}
	if err == nil {
		s.ports.close(in.Session)
	}
	return done, err
}

// messageOf says what a save did, and what the agent can do next.
func messageOf(in saveInput, done *client.EndResult, isDefault bool) string {
	text, again := "saved as snapshot "+done.Snapshot.ID+"; the session continues", "as_default: true and overwrite: true"
	if in.End {
		text, again = "saved as snapshot "+done.Snapshot.ID+"; the session has ended", "as_default: true, end: true and overwrite: true"
	}
	switch {
	case isDefault:
		return text + "; the snapshot is the user's default now"
	case !in.AsDefault:
		return text + "; the user's default is not changed, so start_session restores this snapshot only if its parameter snapshot names it"
	}
	text += "; the user's default is not changed"
	if done.Default != nil && done.Default.Reason != "" {
		text += ": " + toolWords(done.Default.Reason)
	}
	if done.Code == "version_conflict" {
		text += "; to make this snapshot the default anyway, call save_session for this session again with " + again
	}
	return text
}

// lostSites warns of a new default without logins if the default before it had some. It
// returns "" if the earlier default had none, or cannot be read.
func lostSites(ctx context.Context, api *client.Client, now *client.Snapshot) string {
	for past, err := range api.History(ctx, now.UserID) {
		if err != nil {
			return ""
		}
		if past.SnapshotID == now.ID {
			continue
		}
		before, err := api.Snapshot(ctx, past.SnapshotID)
		if err != nil {
			return ""
		}
		sites := sitesOf(before)
		if len(sites) == 0 {
			return ""
		}
		return fmt.Sprintf("the new default has no site that looks logged in, but the default before it had: %s. If that was not intended, "+
			"call start_session with snapshot: %s, then save_session with as_default: true and overwrite: true", strings.Join(sites, ", "), before.ID)
	}
	return ""
}

type endInput struct {
	Session string `json:"session_id" jsonschema:"the session"`
}

type ended struct {
	Message string `json:"message"`
}

func (s *server) end(ctx context.Context, api *client.Client, in endInput) (ended, error) {
	if _, err := api.Session(ctx, in.Session); err != nil { // the API answers the end of an unknown session without an error
		return ended{}, err
	}
	done, err := api.EndSession(ctx, in.Session, client.EndOptions{})
	if err != nil {
		return ended{}, err
	}
	s.ports.close(in.Session)
	if done.UndoUntil != nil {
		return ended{"the session has ended, and nothing was saved; until " + done.UndoUntil.Format(time.RFC3339) + " save_session with end: true can still save it"}, nil
	}
	return ended{toolWords(done.Message)}, nil
}
