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

// How much data each killed session has besides its profile, in bytes that cannot be
// compressed, and how many sessions run when the daemon is killed.
const (
	killedSessions = 8
	killedBytes    = 20 << 20
)

// rescueDeadline is how long a daemon may take to rescue all of them.
const rescueDeadline = 5 * time.Minute

// restartSurvey kills the daemon while sessions run, and measures how soon the next
// daemon answers.
func restartSurvey(ctx context.Context, b *bench) (err error) {
	h, err := b.host(ctx, []string{"STASIS_SPARES=0"}, "--max-sessions", fmt.Sprint(killedSessions+spareSlots))
	defer func() { err = stopHost(h, err) }()
	if err != nil {
		return err
	}
	s := section{
		title: "After a kill",
		text: fmt.Sprintf(`The daemon is killed with SIGKILL and started again. Times are from that start. "First answer" ends when the daemon answers a
call, "first session" when the create of a fresh session is answered, and "all rescued" when every session that ran is saved.
Each of these sessions has %d MB more in its profile. Most of the first time is a trial start of Chrome, which each start of the daemon makes.`, killedBytes>>20),
		head: []string{"sessions that ran", "first answer, ms", "first session, ms", "all rescued, ms"},
	}
	for _, n := range []int{0, killedSessions} {
		k, err := h.killAndRestart(ctx, n)
		if err != nil {
			return err
		}
		s.rows = append(s.rows, []string{fmt.Sprint(n), number(k.calls), number(k.session), number(k.rescued)})
		if n > 0 {
			b.figures["restart/calls"] = quartiles{k.calls, k.calls, k.calls}
		}
	}
	b.surveyed = append(b.surveyed, s)
	return nil
}

// restart has the times from the start of a daemon to some events, in milliseconds.
type restart struct {
	calls   float64 // the first answer
	session float64 // the first fresh session
	rescued float64 // all sessions of the killed daemon are saved
}

// killAndRestart creates sessions, kills the daemon and starts it again.
func (h *host) killAndRestart(ctx context.Context, sessions int) (k restart, err error) {
	for range sessions {
		if _, err := h.atMe(ctx, obj{}); err != nil {
			return k, err
		}
	}
	if err := h.addData(); err != nil {
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

// rescuing reports whether a session of the killed daemon is not rescued yet.
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

// addData adds a file to every profile in use.
func (h *host) addData() error {
	folders, err := filepath.Glob(filepath.Join(h.Dir, "run", "*", "profile"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		profile := filepath.Join(folder, "Default")
		if _, err := os.Lstat(profile); err != nil {
			profile = filepath.Join(folder, "Spare") // the environment has entered it
		}
		folder := filepath.Join(profile, "IndexedDB", "burden.leveldb")
		body := make([]byte, killedBytes)
		_, err := rand.Read(body)
		if err := errors.Join(err, os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "000003.log"), body, 0o600)); err != nil {
			return err
		}
	}
	return nil
}
