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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// readyDeadline is how long a Chrome that is kept ready may take to be so, and
// readyPause how long it is left alone between two looks: the only way to look is
// a restore.
const (
	readyDeadline = 5 * time.Minute
	readyPause    = 2 * time.Second
)

// stasis is a way of ours.
type stasis struct {
	title   string
	path    string // that the restore must take, as its report has it
	through string // format in which it is exported to another daemon and imported there; "" for none
	engine  string // that it begins in
	then    string // engine that it comes back in
	scratch string // a folder for the data directories; short, for Chrome puts sockets below it

	told      obj    // what the first browser's pages are told; nil where its session is given nothing
	extension []byte // zipped; empty for none
	daemon    *rig.Daemon
	session   string // that runs now
	without   obj    // of the first session's fields those that lead another way
	why       string // why they do
}

// The engines.
const (
	inChrome = "chrome"
	inShell  = "shell"
)

// What a restore's report says of how it went.
const (
	pathCold    = "cold"
	pathWarm    = "warm"
	pathStandby = "standby"
	pathParked  = "parked"
)

// ownUser is whose the sessions are that name nobody: the first key's user.
const ownUser = "default"

// Formats of an export, as of GET /v1/snapshots/{id}/state, and the archive.
const (
	archive    = "stasis"
	playwright = "playwright"
)

func (s *stasis) name() string { return s.title }

func (s *stasis) passkeys() bool { return s.told != nil }

func (s *stasis) otherwise() ([]string, string) {
	return slices.Collect(maps.Keys(s.without)), s.why
}

// leading are the fields with which an environment comes back another way.
func (s *stasis) leading() []string {
	switch {
	case s.path == pathStandby && s.then == inChrome:
		return []string{"extensions"}
	case s.path != pathWarm:
		return nil
	case s.then == inShell:
		return []string{"user_agent", "timezone", "locale", "proxy"}
	}
	return []string{"user_agent", "timezone"}
}

func (s *stasis) open(ctx context.Context, desktop string) (string, error) {
	if err := os.Mkdir(s.scratch, 0o711); err != nil {
		return "", err
	}
	s.daemon.Dir = filepath.Join(s.scratch, "a")
	spares := 0
	if s.path == pathWarm {
		spares = 1 // of each engine; but of one that nobody asks for there are none
	}
	s.daemon.Args = []string{"--spares", fmt.Sprint(spares), "--shell-spares", fmt.Sprint(spares)}
	if err := s.daemon.Start(ctx); err != nil {
		return "", err
	}
	packed, err := exec.CommandContext(ctx, "tar", "-C", desktop, "-cz", ".").Output()
	if err != nil {
		return "", fmt.Errorf("tar: %w", err)
	}
	fields := obj{"passkeys": s.passkeys(), "engine": s.engine}
	if s.engine == inChrome && len(s.extension) > 0 { // the shell has none
		var added struct{ ID string }
		if err := s.daemon.Call(ctx, http.MethodPost, "/v1/extensions", s.extension, &added); err != nil {
			return "", err
		}
		fields["extensions"] = []string{added.ID}
	}
	maps.Copy(fields, s.told)
	s.without = obj{}
	for _, name := range s.leading() {
		if value, given := fields[name]; given {
			s.without[name] = value
			delete(fields, name)
		}
	}
	first, err := s.take(ctx, "datadir", packed, fields)
	return first.CDP, err
}

// take imports what was kept elsewhere and makes a session of it, with fields.
func (s *stasis) take(ctx context.Context, format string, body []byte, fields obj) (made, error) {
	var got struct{ Snapshot struct{ ID string } }
	if err := s.daemon.Call(ctx, http.MethodPost, "/v1/snapshots?format="+format, body, &got); err != nil {
		return made{}, err
	}
	return s.create(ctx, obj{"restore_from_environment_id": got.Snapshot.ID}, fields)
}

// made is a session as its create's answer tells of it.
type made struct {
	ID       string `json:"session_id"`
	CDP      string `json:"cdp_url"`
	Restored struct {
		Path           string
		FallbackReason string `json:"fallback_reason"`
	}
}

// create makes a session with the fields of both.
func (s *stasis) create(ctx context.Context, of, more obj) (made, error) {
	fields := maps.Clone(of)
	maps.Copy(fields, more)
	var got made
	err := s.daemon.Call(ctx, http.MethodPost, "/v1/sessions", fields, &got)
	s.session = got.ID
	return got, err
}

// save ends the session, as further query parameters say, and gives its
// snapshot's ID.
func (s *stasis) save(ctx context.Context, mode, further string) (string, error) {
	var ended struct{ Snapshot struct{ ID string } }
	err := s.daemon.Call(ctx, http.MethodDelete, "/v1/sessions/"+s.session+"?save_snapshot_mode="+mode+further, nil, &ended)
	return ended.Snapshot.ID, err
}

func (s *stasis) comeBack(ctx context.Context) (string, error) {
	if s.path == pathStandby {
		return s.fromStandby(ctx)
	}
	mode := "filesystem"
	if s.path == pathParked {
		mode = "memory"
	}
	id, err := s.save(ctx, mode, "")
	if err != nil {
		return "", err
	}
	if s.through != "" {
		return s.elsewhere(ctx, id)
	}
	of := obj{"restore_from_environment_id": id, "engine": s.then}
	if len(s.without) > 0 {
		if err := s.leadAway(ctx, of); err != nil {
			return "", err
		}
	}
	return s.restore(ctx, of)
}

// fromStandby makes the environment the user's default, which a Chrome is to
// stand by with.
func (s *stasis) fromStandby(ctx context.Context) (string, error) {
	if err := s.daemon.Call(ctx, http.MethodPatch, "/v1/users/"+ownUser, obj{"standby": 1, "engine": s.then}, nil); err != nil {
		return "", err
	}
	if _, err := s.save(ctx, "filesystem", "&save_as_default=true"); err != nil {
		return "", err
	}
	if len(s.without) > 0 {
		s.why = "No Chrome stands by with extensions: they would run before anybody has asked for them"
	}
	return s.restore(ctx, obj{"restore_default_environment_from_user_id": ownUser})
}

// restore comes back in the way that the column tells of. What is kept ready may
// not be so yet; then a restore goes another way, and is thrown away.
func (s *stasis) restore(ctx context.Context, of obj) (string, error) {
	for deadline := time.Now().Add(readyDeadline); ; {
		back, err := s.create(ctx, of, nil)
		if err != nil {
			return "", err
		}
		if back.Restored.Path == s.path {
			return back.CDP, nil
		}
		if s.path != pathWarm && s.path != pathStandby || time.Now().After(deadline) {
			return "", fmt.Errorf("it came back %s and not %s: %s", back.Restored.Path, s.path, back.Restored.FallbackReason)
		}
		if _, err := s.save(ctx, "none", ""); err != nil {
			return "", err
		}
		select {
		case <-time.After(readyPause):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// leadAway tries what the first session was not given: with it a restore takes
// another way, for that reason.
func (s *stasis) leadAway(ctx context.Context, of obj) error {
	back, err := s.create(ctx, of, s.without)
	if err != nil {
		return err
	}
	s.why = back.Restored.FallbackReason
	for name := range s.without {
		if back.Restored.Path == s.path || !strings.Contains(s.why, name) {
			return fmt.Errorf("with %s it came back %s: %s", name, back.Restored.Path, s.why)
		}
	}
	_, err = s.save(ctx, "none", "")
	return err
}

// elsewhere carries a snapshot to another daemon, and restores it there.
func (s *stasis) elsewhere(ctx context.Context, id string) (string, error) {
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
	back, err := s.take(ctx, s.through, kept, nil)
	if err == nil && back.Restored.Path != s.path {
		err = fmt.Errorf("it came back %s and not %s", back.Restored.Path, s.path)
	}
	return back.CDP, err
}

// end saves the session and unpacks what was archived of its directory.
func (s *stasis) end(ctx context.Context) (string, error) {
	id, err := s.save(ctx, "filesystem", "")
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
