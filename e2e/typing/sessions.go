package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// How a session is created.
const (
	fresh   = "fresh"
	warm    = "warm"
	standby = "standby"
	parked  = "parked"
	thawed  = "thawed"
)

// opening is how often open checks whether a session can be opened by a restore path,
// and pause is the time between two checks. A spare or standby must start first, and the
// busy machine slows it down.
const (
	opening = 3000
	pause   = 100 * time.Millisecond
)

// sessions opens sessions of a daemon, by engine.
type sessions struct {
	*rig.Daemon
	saved map[string]string // the snapshot of each engine
}

// prepare saves an environment of each engine as the default of a user, and turns on a
// standby for it if a row needs one. Otherwise a warm restore would take the standby.
func (s *sessions) prepare(ctx context.Context, site *site, c *client, rows []row) error {
	s.saved = map[string]string{}
	for _, engine := range engines {
		one, err := s.Create(ctx, object{"user_id": engine, "engine": engine})
		if err != nil {
			return err
		}
		if _, err := c.typeInto("puppeteer", one.CDP, site); err != nil {
			return err
		}
		if s.saved[engine], err = s.End(ctx, one.ID, "filesystem&save_as_default=true"); err != nil {
			return err
		}
		if !slices.ContainsFunc(rows, func(r row) bool { return r.path == standby && r.engine == engine }) {
			continue
		}
		if err := s.Call(ctx, http.MethodPatch, "/v1/users/"+engine, object{"engine": engine, "standby": 1}, nil); err != nil {
			return err
		}
	}
	return nil
}

// open opens a session by a restore path.
func (s *sessions) open(ctx context.Context, engine, path string) (*rig.Session, error) {
	user := object{"user_id": engine, "engine": engine}
	switch path {
	case warm:
		user["restore_from_environment_id"] = s.saved[engine]
		return s.await(ctx, user, warm, "spare")
	case standby:
		user["restore_default_environment_from_user_id"] = engine
		return s.await(ctx, user, standby, "standby")
	case parked:
		one, err := s.Create(ctx, user)
		if err != nil {
			return nil, err
		}
		snapshot, err := s.End(ctx, one.ID, "memory")
		if err != nil {
			return nil, err
		}
		user["restore_from_environment_id"] = snapshot
		one, err = s.Create(ctx, user)
		if err == nil && one.Restored.Path != parked {
			err = fmt.Errorf("the restore path was %s, want %s: %s", one.Restored.Path, parked, one.Restored.Reason)
		}
		return one, err
	case thawed:
		one, err := s.Create(ctx, user)
		for _, call := range []string{"pause", "resume"} {
			if err == nil {
				err = s.Call(ctx, http.MethodPost, "/v1/sessions/"+one.ID+"/"+call, nil, nil)
			}
		}
		return one, err
	default:
		return s.Create(ctx, user)
	}
}

// await creates sessions until one is restored by the given path. Before each create, it
// waits until the daemon keeps a Chrome of the kind that the path takes.
func (s *sessions) await(ctx context.Context, fields object, path, kind string) (*rig.Session, error) {
	keeps := regexp.MustCompile(`stasis_chromes_kept\{kind="` + kind + `"\} [1-9]`)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range opening {
		var metrics []byte
		if err := s.Call(ctx, http.MethodGet, "/metrics", nil, &metrics); err != nil {
			return nil, err
		}
		if keeps.Match(metrics) { // it may be of the other engine
			one, err := s.Create(ctx, fields)
			if err != nil || one.Restored.Path == path {
				return one, err
			}
			if _, err := s.End(ctx, one.ID, "none"); err != nil {
				return nil, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("no session was restored by the path %s in time", path)
}
