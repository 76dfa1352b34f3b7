package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

const (
	keepersOfRun = 4
	// keeperPause is the time between two visits, and checkpointEvery how many visits are
	// between two checkpoints.
	keeperPause     = time.Second
	checkpointEvery = 4
	// visitDeadline limits a visit, callDeadline other calls, and saveDeadline those that start a
	// Chrome or save.
	visitDeadline = 5 * time.Second
	callDeadline  = 10 * time.Second
	saveDeadline  = 30 * time.Second
)

// keeper uses one session for the whole run: it visits the site, saves, and resumes the session
// on any node if it has ended.
type keeper struct {
	*run
	id       string
	restarts bool // the session restarts by itself

	cdp  *rig.Conn // nil: it has lost the session
	page string

	mu    sync.Mutex
	tried int       // the newest visit that was begun
	done  int       // the newest visit that has succeeded
	kept  int       // the newest visit that a confirmed save has
	saved bool      // there is a confirmed save
	used  time.Time // the last success
	err   error     // the last failure since
}

// usedSince reports whether the session was used since a time.
func (k *keeper) usedSince(t time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.used.After(t)
}

func (k *keeper) problem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// step makes a visit, and a checkpoint after some.
func (k *keeper) step(ctx context.Context) {
	err := k.visit(ctx)
	k.mu.Lock()
	k.err = err
	if err == nil {
		k.used = time.Now()
	}
	due := err == nil && k.done%checkpointEvery == 0
	k.mu.Unlock()
	switch {
	case err != nil:
		k.disconnect()
	case due:
		k.save(ctx)
	}
}

func (k *keeper) disconnect() {
	if k.cdp != nil {
		k.cdp.Close()
		k.cdp = nil
	}
}

func (k *keeper) visit(ctx context.Context) error {
	if k.cdp == nil {
		if err := k.connect(ctx); err != nil {
			return err
		}
	}
	k.mu.Lock()
	k.tried++
	n := k.tried
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, visitDeadline)
	defer cancel()
	if err := visit(ctx, k.cdp, k.page, k.site, strconv.Itoa(n)); err != nil {
		k.saves.mayFollow(k.id, strconv.Itoa(n))
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = n
	return nil
}

// connect makes the session live and connects to it. It then has the cookie of the last visit
// that a confirmed save has, or of a later one.
func (k *keeper) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, saveDeadline)
	defer cancel()
	cdp, err := k.live(ctx)
	if err != nil {
		return err
	}
	conn, page, err := attach(ctx, cdp)
	if err != nil {
		return err
	}
	cookie, err := cookieOf(ctx, conn)
	if err != nil {
		conn.Close()
		return err
	}
	n, _ := strconv.Atoi(cookie)
	k.mu.Lock()
	defer k.mu.Unlock()
	if (k.saved && n < k.kept || n > k.tried) && !k.saves.follows(k.id, cookie) {
		k.saves.wrong(fmt.Sprintf("%s has the cookie of visit %d; a confirmed save has that of visit %d", k.id, n, k.kept))
	}
	k.cdp, k.page = conn, page
	k.resumed()
	return nil
}

// live creates or resumes the session, and returns its cdp_url.
func (k *keeper) live(ctx context.Context) (string, error) {
	k.mu.Lock()
	begun := k.tried > 0
	k.mu.Unlock()
	var s struct {
		CDP *string `json:"cdp_url"`
	}
	api := k.API()
	if begun {
		err := api.Call(ctx, http.MethodPost, "/v1/sessions/"+k.id+"/resume", nil, &s)
		if err == nil && s.CDP != nil {
			return *s.CDP, nil
		}
		var refused *rig.Refused
		if !errors.As(err, &refused) || refused.Code != "no_snapshot" && refused.Code != "session_not_found" {
			return "", errors.Join(err, errors.New("not resumed"))
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.saved {
			k.saves.wrong(fmt.Sprintf("%s has a confirmed save, and is refused as %s", k.id, refused.Code))
		}
		k.tried, k.done = 0, 0
	}
	body := map[string]any{"session_id": k.id, "user_id": k.id, "idle_timeout_seconds": 21600, "resume": true, "if_missing": "fresh"}
	if k.restarts {
		body["restart"] = "on_crash"
	}
	if err := api.Call(ctx, http.MethodPost, "/v1/sessions", body, &s); err != nil {
		return "", err
	}
	if s.CDP == nil {
		return "", errors.New("the new session has ended")
	}
	return *s.CDP, nil
}

// resumed notes how long after a fault the session is used again, if its node had the fault.
func (k *keeper) resumed() {
	k.run.mu.Lock()
	defer k.run.mu.Unlock()
	if one := k.now; one != nil && one.on[k.id] && one.resumable[k.id] == 0 {
		one.resumable[k.id] = time.Since(one.began)
	}
}

// save makes a checkpoint.
func (k *keeper) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveDeadline)
	defer cancel()
	k.mu.Lock()
	before := k.done
	k.mu.Unlock()
	var made struct{ Snapshot struct{ ID string } }
	if err := k.API().Call(ctx, http.MethodPost, "/v1/sessions/"+k.id+"/snapshots", struct{}{}, &made); err != nil {
		return // a save that fails loses nothing
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept, k.saved = before, true
	k.saves.add(saved{id: made.Snapshot.ID, session: k.id, cookie: strconv.Itoa(before)})
}

// attach connects to a browser's first page.
func attach(ctx context.Context, cdp string) (conn *rig.Conn, page string, err error) {
	if conn, err = rig.Dial(ctx, cdp); err != nil {
		return nil, "", err
	}
	if page, err = pageOf(ctx, conn); err != nil {
		conn.Close()
		return nil, "", err
	}
	return conn, page, nil
}

// pageOf attaches to a browser's first page.
func pageOf(ctx context.Context, conn *rig.Conn) (page string, err error) {
	var all struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	var attached struct{ SessionID string }
	err = conn.Call(ctx, "", "Target.getTargets", nil, &all)
	for _, info := range all.TargetInfos {
		if err == nil && info.Type == "page" && attached.SessionID == "" {
			err = conn.Call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": info.TargetID, "flatten": true}, &attached)
		}
	}
	if err == nil && attached.SessionID == "" {
		err = errors.New("the session has no page")
	}
	return attached.SessionID, err
}

// cookieOf returns the name of the newest visit that a browser has a cookie of.
func cookieOf(ctx context.Context, conn *rig.Conn) (string, error) {
	var jar struct {
		Cookies []struct{ Name, Value string }
	}
	if err := conn.Call(ctx, "", "Storage.getCookies", nil, &jar); err != nil {
		return "", err
	}
	for _, c := range jar.Cookies {
		if strings.EqualFold(c.Name, visitCookie) {
			return c.Value, nil
		}
	}
	return "", nil
}
