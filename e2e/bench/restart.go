package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// killed sessions have so much in their profile besides, which no compression
// makes smaller, and so many of them run when the daemon is killed.
const (
	killedSessions = 8
	killedBytes    = 20 << 20
)

// rescueDeadline is how long a daemon may take to rescue all of them.
const rescueDeadline = 5 * time.Minute

// restartSurvey kills the daemon with sessions running, and looks at how soon the
// next one takes calls.
func restartSurvey(ctx context.Context, b *bench) (err error) {
	h, err := b.host(ctx, []string{"STASIS_SPARES=0"}, "--max-sessions", fmt.Sprint(killedSessions+spareRoom))
	defer func() { err = stopped(h, err) }()
	if err != nil {
		return err
	}
	s := section{
		title: "After a kill",
		text: fmt.Sprintf(`The daemon is ended with SIGKILL and started again. "Takes calls" is the time from its start to the first answer; "a session" that to a fresh
session's create being answered; "all rescued" that until every session that ran is saved. Each has %d MB in its profile. Most of the first is a Chrome that every start tries.`, killedBytes>>20),
		head: []string{"sessions that ran", "takes calls, ms", "a session, ms", "all rescued, ms"},
	}
	for _, n := range []int{0, killedSessions} {
		k, err := h.killed(ctx, n)
		if err != nil {
			return err
		}
		s.rows = append(s.rows, []string{fmt.Sprint(n), number(k.calls), number(k.session), number(k.rescued)})
		if n > 0 {
			b.figures["restart/calls"] = quartiles{k.calls, k.calls, k.calls}
		}
	}
	b.seen = append(b.seen, s)
	return nil
}

// restart is how long after the start of a daemon something was so, in milliseconds.
type restart struct {
	calls   float64 // it answered
	session float64 // it had made a fresh session
	rescued float64 // every session of the killed daemon was saved
}

// killed runs sessions, kills the daemon and starts it again.
func (h *host) killed(ctx context.Context, sessions int) (k restart, err error) {
	for range sessions {
		if _, err := h.atMe(ctx, obj{}); err != nil {
			return k, err
		}
	}
	if err := h.burden(); err != nil {
		return k, err
	}
	if err := h.Stop(syscall.SIGKILL); err != nil {
		return k, err
	}
	began := time.Now()
	since := func() float64 { return milliseconds(time.Since(began)) }
	if err := h.Start(ctx); err != nil {
		return k, err
	}
	if err := h.Call(ctx, http.MethodGet, "/readyz", nil, nil); err != nil {
		return k, err
	}
	k.calls = since()
	fresh, err := h.create(ctx, obj{})
	if err != nil {
		return k, err
	}
	k.session = since()
	for h.rescuing(ctx) && time.Since(began) < rescueDeadline {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return k, ctx.Err()
		}
	}
	k.rescued = since()
	_, err = fresh.end(ctx, "none", false)
	return k, err
}

// rescuing reports whether a session of the last daemon is not rescued yet.
func (h *host) rescuing(ctx context.Context) bool {
	var list []struct{ Rescuing bool }
	if err := h.Call(ctx, http.MethodGet, "/v1/sessions?limit=100", nil, &list); err != nil {
		return false
	}
	for _, s := range list {
		if s.Rescuing {
			return true
		}
	}
	return false
}

// burden puts a file into every profile that is in use.
func (h *host) burden() error {
	profiles, err := filepath.Glob(filepath.Join(h.Dir, "run", "*", "profile", "Default"))
	if err != nil {
		return err
	}
	for _, profile := range profiles {
		folder := filepath.Join(profile, "IndexedDB", "burden.leveldb")
		body := make([]byte, killedBytes)
		_, err := rand.Read(body)
		if err := errors.Join(err, os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "000003.log"), body, 0o600)); err != nil {
			return err
		}
	}
	return nil
}
