package main

import (
	"context"
	"encoding/json"
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

// readyDeadline is how long a Chrome that is kept ready may take to become ready.
// readyPause is the pause between two checks: only a restore shows whether it is ready.
const (
	readyDeadline = 5 * time.Minute
	readyPause    = 2 * time.Second
)

// stasis is a method of Stasis.
type stasis struct {
	title   string
	path    string // the restore path that the report must name
	gates   bool   // the environment must enter the spare's profile
	through string // format of the export to another daemon; "" for no export
	engine  string // engine of the first session
	then    string // engine of the restored session
	scratch string // folder for the data directories; short, because Chrome puts sockets below it

	overrides obj    // overrides of the first browser's pages; nil for a bare session
	extension []byte // zipped; empty for none
	daemon    *rig.Daemon
	session   string // ID of the session that runs now
	omitted   obj    // fields that the first session did not get, because they lead to another restore path
	why       string // why they lead there
}

// The engines.
const (
	inChrome = "chrome"
	inShell  = "shell"
)

// Restore paths, as a restore's report names them.
const (
	pathCold    = "cold"
	pathWarm    = "warm"
	pathStandby = "standby"
	pathParked  = "parked"
)

// ownUser is the user of sessions that name none: the first key's user.
const ownUser = "default"

// Formats of an export (GET /v1/snapshots/{id}/state), and the archive.
const (
	archive    = "stasis"
	playwright = "playwright"
)

func (s *stasis) name() string { return s.title }

func (s *stasis) passkeys() bool { return s.overrides != nil }

func (s *stasis) excluded() ([]string, string) {
	return slices.Collect(maps.Keys(s.omitted)), s.why
}

// excludedFields returns the fields with which a restore takes another path.
func (s *stasis) excludedFields() []string {
	switch {
	case s.gates:
		return []string{"user_agent", "timezone", "locale", "proxy", "geolocation", "permission_policy", "extensions"}
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
		spares = 1 // for each engine; Stasis keeps spares of an engine only after a create has requested it
	}
	s.daemon.Args = []string{"--spares", fmt.Sprint(spares), "--shell-spares", fmt.Sprint(spares)}
	if err := s.daemon.Start(ctx); err != nil {
		return "", err
	}
	if s.gates {
		var err error
		if desktop, err = s.withoutSiteSettings(ctx, desktop); err != nil {
			return "", err
		}
	}
	packed, err := exec.CommandContext(ctx, "tar", "-C", desktop, "-cz", ".").Output()
	if err != nil {
		return "", fmt.Errorf("tar: %w", err)
	}
	fields := obj{"passkeys": s.passkeys(), "engine": s.engine}
	if s.engine == inChrome && len(s.extension) > 0 { // the shell has no extensions
		var added struct{ ID string }
		if err := s.daemon.Call(ctx, http.MethodPost, "/v1/extensions", s.extension, &added); err != nil {
			return "", err
		}
		fields["extensions"] = []string{added.ID}
	}
	maps.Copy(fields, s.overrides)
	s.omitted = obj{}
	for _, name := range s.excludedFields() {
		if value, given := fields[name]; given {
			s.omitted[name] = value
			delete(fields, name)
		}
	}
	if s.gates {
		s.omitted[siteSettings] = true
		s.why = "Chrome reads this only when it starts or opens a profile, so such an environment takes the way of an earlier column"
	}
	first, err := s.take(ctx, "datadir", packed, fields)
	if err != nil {
		return "", err
	}
	return first.CDP, nil
}

// withoutSiteSettings returns a copy of a user data directory without the settings of sites.
func (s *stasis) withoutSiteSettings(ctx context.Context, desktop string) (string, error) {
	dir := filepath.Join(s.scratch, "desktop")
	if err := copyDir(ctx, desktop, dir); err != nil {
		return "", err
	}
	return dir, edit(dir, "Default/Preferences", func(prefs map[string]any) {
		set(prefs, map[string]any{}, "profile", "content_settings", "exceptions", "geolocation")
		set(prefs, map[string]any{}, "partition", "per_host_zoom_levels")
	})
}

// take imports a snapshot or profile and creates a session from it, with more fields.
func (s *stasis) take(ctx context.Context, format string, body []byte, fields obj) (*rig.Session, error) {
	var got struct{ Snapshot struct{ ID string } }
	if err := s.daemon.Call(ctx, http.MethodPost, "/v1/snapshots?format="+format, body, &got); err != nil {
		return nil, err
	}
	return s.create(ctx, obj{"restore_from_environment_id": got.Snapshot.ID}, fields)
}

// create makes a session with the fields of both objects.
func (s *stasis) create(ctx context.Context, of, more obj) (*rig.Session, error) {
	fields := maps.Clone(of)
	maps.Copy(fields, more)
	got, err := s.daemon.Create(ctx, fields)
	s.session = got.ID
	return got, err
}

// save ends the session with a save mode and further query parameters. It returns the
// snapshot's ID.
func (s *stasis) save(ctx context.Context, mode, further string) (string, error) {
	return s.daemon.End(ctx, s.session, mode+further)
}

func (s *stasis) restore(ctx context.Context) (string, error) {
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
		return s.viaOtherDaemon(ctx, id)
	}
	of := obj{"restore_from_environment_id": id, "engine": s.then}
	if len(s.omitted) > 0 && !s.gates {
		if err := s.checkExcluded(ctx, of); err != nil {
			return "", err
		}
	}
	return s.restoreByPath(ctx, of)
}

// fromStandby makes the environment the user's default, so that a standby is started for
// it, and restores from that.
func (s *stasis) fromStandby(ctx context.Context) (string, error) {
	if err := s.daemon.Call(ctx, http.MethodPatch, "/v1/users/"+ownUser, obj{"standby": 1, "engine": s.then}, nil); err != nil {
		return "", err
	}
	if _, err := s.save(ctx, "filesystem", "&save_as_default=true"); err != nil {
		return "", err
	}
	if len(s.omitted) > 0 {
		s.why = "A standby never has extensions: they would run before a create has requested them"
	}
	return s.restoreByPath(ctx, obj{"restore_default_environment_from_user_id": ownUser})
}

// restoreByPath restores by the column's restore path. A spare or standby may not be ready
// yet. Then the restore takes another path, and the session is ended and tried again.
func (s *stasis) restoreByPath(ctx context.Context, of obj) (string, error) {
	for deadline := time.Now().Add(readyDeadline); ; {
		back, err := s.create(ctx, of, nil)
		if err != nil {
			return "", err
		}
		if back.Restored.Path == s.path && (!s.gates || back.ByGates()) {
			return back.CDP, nil
		}
		if s.path != pathWarm && s.path != pathStandby || time.Now().After(deadline) {
			return "", fmt.Errorf("the restore path was %s, want %s: %s", back.Restored.Path, s.path, back.Restored.Reason)
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

// checkExcluded restores with the fields that the first session did not get. It checks that
// the restore takes another path, and that the reason names them.
func (s *stasis) checkExcluded(ctx context.Context, of obj) error {
	back, err := s.create(ctx, of, s.omitted)
	if err != nil {
		return err
	}
	s.why = back.Restored.Reason
	for name := range s.omitted {
		if back.Restored.Path == s.path || !strings.Contains(s.why, name) {
			return fmt.Errorf("with %s the restore path was %s: %s", name, back.Restored.Path, s.why)
		}
	}
	_, err = s.save(ctx, "none", "")
	return err
}

// viaOtherDaemon moves a snapshot to another daemon and restores it there.
func (s *stasis) viaOtherDaemon(ctx context.Context, id string) (string, error) {
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
	if s.through == playwright && emptyState(kept) { // an import refuses it
		fresh, err := s.create(ctx, obj{"engine": s.then}, nil)
		return fresh.CDP, err
	}
	back, err := s.take(ctx, s.through, kept, nil)
	if err != nil {
		return "", err
	}
	if back.Restored.Path != s.path {
		return "", fmt.Errorf("the restore path was %s, want %s", back.Restored.Path, s.path)
	}
	return back.CDP, nil
}

// emptyState reports whether a file in Playwright's format has nothing.
func emptyState(file []byte) bool {
	var state struct {
		Cookies []any
		Origins []struct{ LocalStorage, IndexedDB []any }
	}
	if json.Unmarshal(file, &state) != nil {
		return false
	}
	items := len(state.Cookies)
	for _, o := range state.Origins {
		items += len(o.LocalStorage) + len(o.IndexedDB)
	}
	return items == 0
}

// end saves the session and unpacks the user data directory from its archive.
func (s *stasis) end(ctx context.Context) (string, error) {
	id, err := s.save(ctx, "filesystem", "")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.scratch, "left")
	return dir, s.daemon.Unpack(ctx, id, dir)
}

func (s *stasis) release() error { return s.daemon.Stop(syscall.SIGTERM) }
