package rig

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
)

// Session is a session of a daemon.
type Session struct {
	ID       string `json:"session_id"`
	CDP      string `json:"cdp_url"`
	Control  string `json:"agent_url"` // the live view, with control
	Engine   string
	Restored struct {
		Path       string // "" in a fresh session
		Reason     string `json:"fallback_reason"`
		Components []Component
	}
}

// Create creates a session.
func (d *Daemon) Create(ctx context.Context, fields any) (*Session, error) {
	s := &Session{}
	return s, d.Call(ctx, http.MethodPost, "/v1/sessions", fields, s)
}

// ByGates reports whether the environment entered the running profile of a spare of full
// Chrome.
func (s *Session) ByGates() bool {
	return slices.ContainsFunc(s.Restored.Components, func(c Component) bool { return c.Code == "merged_at_saves" })
}

// Component is a line of a restore's report.
type Component struct {
	Name string
	Code string `json:"reason_code"`
}

// End ends a session with a save mode, to which further parameters of the query may be appended. It
// returns the snapshot's ID; "" if none was made.
func (d *Daemon) End(ctx context.Context, session, mode string) (snapshot string, err error) {
	var ended struct{ Snapshot struct{ ID string } }
	err = d.Call(ctx, http.MethodDelete, "/v1/sessions/"+session+"?save_snapshot_mode="+mode, nil, &ended)
	return ended.Snapshot.ID, err
}

// Unpack unpacks a snapshot's files into a new folder, as a user data directory that any Chrome
// can use.
func (d *Daemon) Unpack(ctx context.Context, snapshot, dir string) error {
	var archive []byte
	if err := d.Call(ctx, http.MethodGet, "/v1/snapshots/"+snapshot+"/archive", nil, &archive); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	unpack := exec.CommandContext(ctx, "tar", "-C", dir, "--zstd", "-x")
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	return nil
}
