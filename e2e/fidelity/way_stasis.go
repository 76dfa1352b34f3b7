package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
)

// stasis is a way of ours.
type stasis struct {
	title   string
	mode    string // save_snapshot_mode
	moved   bool   // to another data directory, with other users
	scratch string // a folder for the data directories; short, for Chrome puts sockets below it
	daemon  *daemon
	session string // that runs now
}

// user is whose the sessions are: who the first key acts for.
const user = "default"

func (s *stasis) name() string { return s.title }

func (s *stasis) open(ctx context.Context, desktop string) (string, error) {
	if err := os.Mkdir(s.scratch, 0o711); err != nil {
		return "", err
	}
	s.daemon.dir = filepath.Join(s.scratch, "a")
	if err := s.daemon.start(ctx); err != nil {
		return "", err
	}
	if err := s.plant(ctx, desktop); err != nil {
		return "", err
	}
	return s.restore(ctx)
}

// plant makes the desktop's profile the environment of a session: as if it had
// been that session's when its daemon died.
func (s *stasis) plant(ctx context.Context, desktop string) error {
	if _, err := s.create(ctx, obj{"user_id": user}); err != nil {
		return err
	}
	if err := s.daemon.stop(syscall.SIGKILL); err != nil {
		return err
	}
	if err := eventually(ctx, daemonDeadline, "its Chrome ends", func() (bool, error) { return gone(s.daemon.dir) }); err != nil {
		return err
	}
	runs, err := filepath.Glob(filepath.Join(s.daemon.dir, "run", "*", "profile"))
	if err != nil || len(runs) != 1 {
		return fmt.Errorf("run directories: %v %v", runs, err)
	}
	profile := filepath.Join(runs[0], "Default")
	if err := os.RemoveAll(profile); err != nil {
		return err
	}
	if err := copyDir(ctx, filepath.Join(desktop, "Default"), profile); err != nil {
		return err
	}
	return s.daemon.start(ctx)
}

// gone tells whether no process of the machine works in a folder.
func gone(dir string) (bool, error) {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err == nil && len(cwd) > len(dir) && cwd[:len(dir)+1] == dir+"/" {
			return false, nil
		}
	}
	return err == nil, err
}

// create makes a session and gives its CDP address.
func (s *stasis) create(ctx context.Context, fields obj) (string, error) {
	var made struct {
		ID  string `json:"session_id"`
		CDP string `json:"cdp_url"`
	}
	err := s.daemon.call(ctx, http.MethodPost, "/v1/sessions", fields, &made)
	s.session = made.ID
	return made.CDP, err
}

// restore makes a session from the one before.
func (s *stasis) restore(ctx context.Context) (string, error) {
	return s.create(ctx, obj{"restore_from_session_id": s.session})
}

// save ends the session and gives its snapshot's ID.
func (s *stasis) save(ctx context.Context, mode string) (string, error) {
	var ended struct{ Snapshot struct{ ID string } }
	err := s.daemon.call(ctx, http.MethodDelete, "/v1/sessions/"+s.session+"?save_snapshot_mode="+mode, nil, &ended)
	return ended.Snapshot.ID, err
}

func (s *stasis) comeBack(ctx context.Context) (string, error) {
	if _, err := s.save(ctx, s.mode); err != nil {
		return "", err
	}
	if s.moved {
		if err := s.move(ctx); err != nil {
			return "", err
		}
	}
	return s.restore(ctx)
}

// move takes archives, catalogue and keys to another data directory, as its
// owner would, and starts a daemon there whose Chromes have other users.
func (s *stasis) move(ctx context.Context) error {
	if err := s.daemon.stop(syscall.SIGTERM); err != nil {
		return err
	}
	from, to := s.daemon.dir, filepath.Join(s.scratch, "elsewhere")
	if err := os.Mkdir(to, 0o711); err != nil {
		return err
	}
	for _, part := range []string{"snapshots", "stasis.db", "identity", "archive-key"} {
		if err := copyDir(ctx, filepath.Join(from, part), filepath.Join(to, part)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(from); err != nil {
		return err
	}
	s.daemon.dir = to
	s.daemon.uids += 100
	return s.daemon.start(ctx)
}

// end saves the session and unpacks what was archived of its directory.
func (s *stasis) end(ctx context.Context) (dir string, err error) {
	id, err := s.save(ctx, "filesystem")
	if err != nil {
		return "", err
	}
	if err := s.daemon.stop(syscall.SIGTERM); err != nil {
		return "", err
	}
	keys, err := snapshot.LoadOrCreateKeys(s.daemon.dir)
	if err != nil {
		return "", err
	}
	store, err := fsstore.Open(filepath.Join(s.daemon.dir, "snapshots"), fsstore.Options{})
	if err != nil {
		return "", err
	}
	defer func() {
		if closed := store.Close(); err == nil {
			err = closed
		}
	}()
	vault := snapshot.NewVault(store, keys, snapshot.Options{Now: time.Now})
	owner := sha256.Sum256([]byte(user))
	at := snapshot.Location{Owner: hex.EncodeToString(owner[:])[:32], Session: s.session, Scope: "agent", ScopeID: "browser"}
	saved, err := vault.Open(ctx, at, id)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(s.scratch, "left")
	_, err = vault.Unpack(ctx, saved, dir, snapshot.UnpackOptions{})
	return dir, err
}

func (s *stasis) release() error { return s.daemon.stop(syscall.SIGTERM) }
