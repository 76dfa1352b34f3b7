package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/stasisd/stasis/client"
)

// sessionWatch checks from time to time whether a session is live.
type sessionWatch struct {
	daemon  *remoteDaemon
	session string
	period  time.Duration // between two checks; 0: watchPeriod
}

const (
	watchPeriod = 2 * time.Second
	// watchPatience is how long the daemon may be unreachable.
	watchPatience = time.Minute
)

// sessionOver is the error for a session that has ended: its final status.
type sessionOver string

func (s sessionOver) Error() string { return "the session has ended: it is " + string(s) }

// wait returns a sessionOver when the session has ended, or why the daemon no longer
// answers. It returns nil when ctx ends.
func (w sessionWatch) wait(ctx context.Context) error {
	beat := time.NewTicker(cmp.Or(w.period, watchPeriod))
	defer beat.Stop()
	var since time.Time // when the daemon failed to answer first; zero: it answers
	for {
		select {
		case <-beat.C:
		case <-ctx.Done():
			return nil
		}
		over, err := w.over(ctx)
		var refused *client.Error
		switch {
		case err == nil && over != "":
			return sessionOver(over)
		case errors.As(err, &refused) && (refused.Code == "session_not_found" || refused.Code == "unauthorized"):
			return err
		case err != nil:
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) >= watchPatience {
				return err
			}
		default:
			since = time.Time{}
		}
	}
}

// over returns the final status of the session; "" while it lives. The request does not
// count as use of the session.
func (w sessionWatch) over(ctx context.Context) (string, error) {
	var info struct {
		Status  string  `json:"status"`
		EndedAt *string `json:"ended_at"`
	}
	if err := w.daemon.call(ctx, http.MethodGet, "/v1/sessions/"+url.PathEscape(w.session), nil, &info); err != nil {
		return "", err
	}
	if info.EndedAt == nil {
		return "", nil
	}
	return info.Status, nil
}
