package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/stasisd/stasis/e2e/rig"
)

// stasis is a way of ours.
type stasis struct {
	title   string
	mode    string // save_snapshot_mode
	through string // format in which it is exported to another daemon and imported there; "" for none
	engine  string // that it begins in
	then    string // engine that it comes back in
	scratch string // a folder for the data directories; short, for Chrome puts sockets below it

	extension []byte // zipped
	daemon    *rig.Daemon
	session   string // that runs now
}

// The engines.
const (
	inChrome = "chrome"
	inShell  = "shell"
)

// Formats of an export, as of GET /v1/snapshots/{id}/state, and the archive.
const (
	archive    = "stasis"
	playwright = "playwright"
)

func (s *stasis) name() string { return s.title }

func (s *stasis) passkeys() bool { return true }

func (s *stasis) open(ctx context.Context, desktop string) (string, error) {
	if err := os.Mkdir(s.scratch, 0o711); err != nil {
		return "", err
	}
	s.daemon.Dir = filepath.Join(s.scratch, "a")
	if err := s.daemon.Start(ctx); err != nil {
		return "", err
	}
	packed, err := exec.CommandContext(ctx, "tar", "-C", desktop, "-cz", ".").Output()
	if err != nil {
		return "", fmt.Errorf("tar: %w", err)
	}
	var added struct{ ID string }
	if err := s.daemon.Call(ctx, http.MethodPost, "/v1/extensions", s.extension, &added); err != nil {
		return "", err
	}
	fields := obj{"passkeys": true, "engine": s.engine}
	if s.engine == inChrome {
		fields["extensions"] = []string{added.ID} // the shell has none
	}
	maps.Copy(fields, told)
	return s.take(ctx, "datadir", packed, fields)
}

// take imports what was kept elsewhere and makes a session of it, with fields.
func (s *stasis) take(ctx context.Context, format string, body []byte, fields obj) (string, error) {
	var got struct{ Snapshot struct{ ID string } }
	if err := s.daemon.Call(ctx, http.MethodPost, "/v1/snapshots?format="+format, body, &got); err != nil {
		return "", err
	}
	of := obj{"restore_from_environment_id": got.Snapshot.ID}
	maps.Copy(of, fields)
	return s.create(ctx, of)
}

// create makes a session and gives its CDP address.
func (s *stasis) create(ctx context.Context, fields obj) (string, error) {
	var made struct {
		ID  string `json:"session_id"`
		CDP string `json:"cdp_url"`
	}
	err := s.daemon.Call(ctx, http.MethodPost, "/v1/sessions", fields, &made)
	s.session = made.ID
	return made.CDP, err
}

// save ends the session and gives its snapshot's ID.
func (s *stasis) save(ctx context.Context, mode string) (string, error) {
	var ended struct{ Snapshot struct{ ID string } }
	err := s.daemon.Call(ctx, http.MethodDelete, "/v1/sessions/"+s.session+"?save_snapshot_mode="+mode, nil, &ended)
	return ended.Snapshot.ID, err
}

func (s *stasis) comeBack(ctx context.Context) (string, error) {
	id, err := s.save(ctx, s.mode)
	if err != nil {
		return "", err
	}
	if s.through == "" {
		return s.create(ctx, obj{"restore_from_session_id": s.session, "engine": s.then})
	}
	path := "/v1/snapshots/" + id + "/archive"
	if s.through == playwright {
		path = "/v1/snapshots/" + id + "/state?indexed_db=true&format=" + playwright
	}
	var kept []byte
	if err := s.daemon.Call(ctx, http.MethodGet, path, nil, &kept); err != nil {
		return "", err
	}
	if err := s.daemon.Stop(syscall.SIGTERM); err != nil {
		return "", err
	}
	if err := os.RemoveAll(s.daemon.Dir); err != nil {
		return "", err
	}
	s.daemon.Dir = filepath.Join(s.scratch, "elsewhere")
	s.daemon.UIDs += 100
	if err := s.daemon.Start(ctx); err != nil {
		return "", err
	}
	return s.take(ctx, s.through, kept, nil)
}

// end saves the session and unpacks what was archived of its directory.
func (s *stasis) end(ctx context.Context) (string, error) {
	id, err := s.save(ctx, "filesystem")
	if err != nil {
		return "", err
	}
	var kept []byte
	if err := s.daemon.Call(ctx, http.MethodGet, "/v1/snapshots/"+id+"/archive", nil, &kept); err != nil {
		return "", err
	}
	dir := filepath.Join(s.scratch, "left")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	unpack := exec.CommandContext(ctx, "tar", "-C", dir, "--zstd", "-x")
	unpack.Stdin = bytes.NewReader(kept)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar: %w: %s", err, out)
	}
	return dir, nil
}

func (s *stasis) release() error { return s.daemon.Stop(syscall.SIGTERM) }
