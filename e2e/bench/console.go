package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stasisd/stasis/e2e/rig"
)

// What the full daemon of consoleSurvey has, and how often each page is loaded.
const (
	consoleSessions  = 40
	consoleSnapshots = 1000
	consoleUsers     = 10
	consoleLoads     = 100
)

// consoleSurvey measures the first byte of the console's pages on two daemons in turn: one
// with sessions and snapshots, and one without.
func consoleSurvey(ctx context.Context, b *bench) (err error) {
	var sides [2]*person
	for i := range sides {
		h, failed := b.host(ctx, []string{"STASIS_SPARES=0"}, "--max-sessions", fmt.Sprint(consoleSessions+spareSlots))
		defer func() { err = stopHost(h, err) }()
		if failed != nil {
			return failed
		}
		if sides[i], err = h.signIn(ctx); err != nil {
			return err
		}
	}
	if err := sides[1].fill(ctx); err != nil {
		return err
	}
	if err := settle(ctx); err != nil {
		return err
	}
	s := section{
		title: "The console",
		text: fmt.Sprintf(`The time from a request for a page of the console to the first byte of the answer, on a connection that is open. One daemon
has only the session and the snapshot of the probe profile. The other one also has %d idle sessions in the shell engine and %d imported snapshots of %d users.
Each page is loaded %d times from both, in turn.`, consoleSessions, consoleSnapshots, consoleUsers, consoleLoads),
		head: []string{"page", "empty, median, ms", "95th percentile, ms", "full, median, ms", "95th percentile, ms", "more, ms"},
	}
	worst := math.Inf(-1)
	for _, page := range []struct{ title, path string }{
		{"Sessions", ""}, {"Users", "users"}, {"a user", "user?user_id=" + ownUser}, {"Snapshots", "snapshots"}, {"a snapshot", "snapshots/"}, {"Daemon", "daemon"},
	} {
		var times [2][]float64
		for n := range consoleLoads + 2 { // the first two are a warm-up
			for i, p := range sides {
				path := page.path
				if path == "snapshots/" {
					path += p.snapshot
				}
				ms, err := p.firstByte(ctx, path)
				if err != nil {
					return fmt.Errorf("%s: %w", page.title, err)
				}
				if n >= 2 {
					times[i] = append(times[i], ms)
				}
			}
		}
		empty, full := quantile(times[0], 0.95), quantile(times[1], 0.95)
		worst = max(worst, full-empty)
		s.rows = append(s.rows, []string{page.title, number(quantile(times[0], 0.5)), number(empty), number(quantile(times[1], 0.5)), number(full), number(full - empty)})
	}
	b.figures["console/extra"] = spread([]float64{worst})
	b.surveyed = append(b.surveyed, s)
	return nil
}

// person is signed in to the console of a daemon.
type person struct {
	*host
	browser *http.Client
}

// signIn signs a person in.
func (h *host) signIn(ctx context.Context) (*person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &person{host: h, browser: &http.Client{Jar: jar}}
	answer, err := p.browser.PostForm(h.URL+"/console/sign-in", url.Values{"key": {rig.Key}}) //nolint:noctx // the daemon is ours and answers at once
	if err != nil {
		return nil, err
	}
	if err := errors.Join(answer.Body.Close(), ctx.Err()); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("signing in: %s", answer.Status)
	}
	return p, nil
}

// firstByte loads a page and returns the milliseconds to the first byte of its answer.
func (p *person) firstByte(ctx context.Context, path string) (ms float64, err error) {
	asked := time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: func() { ms = milliseconds(time.Since(asked)) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/console/"+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := p.browser.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", path, answer.Status)
	}
	return ms, nil
}

// fill makes the sessions and the snapshots.
func (h *host) fill(ctx context.Context) error {
	for i := range consoleSessions {
		if _, err := h.create(ctx, obj{"engine": shell, "user_id": userOf(i), "idle_timeout_seconds": int((time.Hour).Seconds())}); err != nil {
			return err
		}
	}
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(4) // the daemon runs two imports at once
	for i := range consoleSnapshots {
		group.Go(func() error {
			cookies := []obj{{"name": "session", "value": fmt.Sprint("value", i), "domain": fmt.Sprintf("site%d.example", i), "path": "/", "expires": -1}}
			return h.Call(inGroup, http.MethodPost, "/v1/snapshots?"+url.Values{"format": {"puppeteer"}, "user_id": {userOf(i)}}.Encode(), cookies, nil)
		})
	}
	return group.Wait()
}

// userOf returns one of consoleUsers users.
func userOf(i int) string { return fmt.Sprint("user-", i%consoleUsers) }
