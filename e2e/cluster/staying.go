package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/stasisd/stasis/e2e/rig"
)

// stayer uses one session for a whole upgrade. It never resumes it: the session must always be
// there. It visits the site, and the page counts the visits in sessionStorage.
type stayer struct {
	*guest
	visits  int  // that were begun
	visited bool // the last one has succeeded
}

// step makes a visit, and a checkpoint after some.
func (s *stayer) step(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*saveDeadline)
	defer cancel()
	if s.cdp == "" {
		body := map[string]any{"session_id": s.id, "user_id": s.id, "idle_timeout_seconds": 21600, "labels": map[string]string{"stays": "yes"}}
		if s.open(ctx, body) != nil {
			return
		}
	}
	if s.conn == nil && s.look(ctx) != nil {
		return
	}
	s.visits++
	s.visited = false
	err := s.do(ctx, func(ctx context.Context, conn *rig.Conn, page string) error {
		err := visit(ctx, conn, page, s.site, strconv.Itoa(s.visits))
		s.visited = err == nil
		return err
	})
	if err == nil && s.visited && s.visits%checkpointEvery == 0 {
		s.save(ctx)
	}
}

// save makes a checkpoint.
func (s *stayer) save(ctx context.Context) {
	var made struct{ Snapshot struct{ ID string } }
	if s.call(ctx, http.MethodPost, "/v1/sessions/"+s.id+"/snapshots", struct{}{}, &made) == nil {
		s.saves.add(saved{id: made.Snapshot.ID, session: s.id, cookie: strconv.Itoa(s.visits)})
	}
}

// look compares the session with what its client did: the cookie and the tab are those of the
// last visit.
func (s *stayer) look(ctx context.Context) error {
	if s.visits == 0 {
		return nil
	}
	return s.do(ctx, func(ctx context.Context, conn *rig.Conn, page string) error {
		cookie, err := cookieOf(ctx, conn)
		if err != nil {
			return err
		}
		var at struct{ Result struct{ Value string } }
		err = conn.Call(ctx, page, "Runtime.evaluate", map[string]any{"expression": "location.search + ' ' + (sessionStorage.first || '')"}, &at)
		if err != nil {
			return err
		}
		if why := s.differs(cookie, at.Result.Value); why != nil {
			s.saves.wrong(why.Error())
		}
		return nil
	})
}

// differs returns an error if a session has not what its client did last. A visit without an
// answer may have set its cookie, and loaded its page, or not.
func (s *stayer) differs(cookie, page string) error {
	has := func(n int) (c, p bool) {
		if n == 0 {
			return cookie == "", page == " "
		}
		return cookie == strconv.Itoa(n), page == fmt.Sprintf("?visit=%d %d", n, 1)
	}
	c, p := has(s.visits)
	if !s.visited && s.visits > 0 {
		before, at := has(s.visits - 1)
		c, p = c || before, p || at
	}
	if c && p {
		return nil
	}
	return fmt.Errorf("%s has cookie %q and page %q after visit %d", s.id, cookie, page, s.visits)
}

// alive returns an error unless the session lives, at the same address, with what its client did.
func (s *stayer) alive(ctx context.Context) error {
	var now struct {
		Status string
		CDP    string `json:"cdp_url"`
		Labels map[string]string
	}
	if err := s.call(ctx, http.MethodGet, "/v1/sessions/"+s.id, nil, &now); err != nil {
		return fmt.Errorf("%s: %w", s.id, err)
	}
	if now.Status != "running" && now.Status != "ready" || now.CDP != s.cdp || now.Labels["stays"] != "yes" {
		return fmt.Errorf("%s is %+v, and was made with %s", s.id, now, s.cdp)
	}
	s.close()
	if err := s.look(ctx); err != nil {
		return err
	}
	if !s.visited {
		return errors.Join(fmt.Errorf("%s has not made its last visit", s.id), ctx.Err())
	}
	return nil
}
