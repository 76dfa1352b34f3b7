package autosave

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// When automatic checkpoints are made. All of these are timers, so a clock that is set
// back changes nothing.
const (
	pollInterval  = time.Second     // how often tabs and cookies are read
	pollTimeout   = 2 * time.Second // how long that may take
	loadDelay     = time.Second     // after a navigation or a login, so that the page can load
	minPause      = 5 * time.Second // the shortest time between two checkpoints, and before the first retry
	maxRetryPause = 5 * time.Minute // the longest time before a retry
)

// ErrFrozen is the error of [Session.Save] if Chrome is frozen and nothing has changed,
// or if the session has ended.
var ErrFrozen = errors.New("the session's Chrome is frozen")

// Session is the live session whose checkpoints are made.
type Session interface {
	// AllDisconnected receives a value when the last client has disconnected.
	AllDisconnected() <-chan struct{}
	// TurnEnded receives a value after a message that ends a turn of the conversation.
	TurnEnded() <-chan struct{}
	// Done is closed when the session is no longer live.
	Done() <-chan struct{}
	// Browser returns the browser, to read it without counting as use of the session; nil
	// if it is frozen or cannot be used now.
	Browser(ctx context.Context) Browser
	// Save makes a checkpoint and returns its snapshot. stored is false if nothing has
	// changed since the last one. stored is true with an error if the checkpoint was
	// stored but has a problem. [ErrFrozen]: there is nothing to save.
	Save(ctx context.Context) (snapshotID string, stored bool, err error)
	// SetStatus records the result of the last checkpoint.
	SetStatus(ctx context.Context, s Status)
	// Prune removes all automatic checkpoints but the newest keep ones.
	Prune(ctx context.Context, keep int)
}

// Browser is what a Saver reads; see browser.Browser.
type Browser interface {
	Pages(ctx context.Context) ([]browser.Page, error)
	Cookies(ctx context.Context) ([]state.Cookie, error)
}

// Saver makes the automatic checkpoints of one session. One goroutine uses it.
type Saver struct {
	session Session
	status  Status
	now     func() time.Time
	log     *slog.Logger
}

// New makes a Saver.
func New(set Settings, session Session, now func() time.Time, log *slog.Logger) *Saver {
	return &Saver{session: session, status: Status{Settings: set}, now: now, log: log}
}

// Run makes checkpoints, one after the other, until the session or ctx ends.
func (s *Saver) Run(ctx context.Context) {
	set := s.status.Settings
	next, pauseTimer, poll := time.NewTimer(set.Interval), time.NewTimer(0), time.NewTicker(pollInterval)
	defer next.Stop()
	defer pauseTimer.Stop()
	defer poll.Stop()
	last, _ := s.poll(ctx) // at once, so that an early login counts as a change
	pausing, wanted := true, false
	want := func(in time.Duration) {
		if !wanted && !pausing {
			next.Reset(in)
		}
		wanted = true
	}
	for {
		select {
		case <-pauseTimer.C:
			if pausing = false; wanted {
				next.Reset(0)
			}
		case <-s.session.AllDisconnected():
			if set.Disconnect {
				want(0)
			}
		case <-s.session.TurnEnded():
			if set.Message {
				want(0)
			}
		case <-poll.C:
			if now, ok := s.poll(ctx); ok {
				if last.known && (set.Navigation && !slices.Equal(now.urls, last.urls) || set.Login && newLogin(last.logins, now.logins)) {
					want(loadDelay)
				}
				last = now
			}
		case <-next.C:
			wait, minWait := s.Save(ctx)
			next.Reset(wait)
			pauseTimer.Reset(minWait)
			pausing, wanted = true, false
		case <-s.session.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// tabState is what was read of a session's tabs and cookies.
type tabState struct {
	known  bool
	urls   []string
	logins map[string]string // state.AuthCookies
}

// newLogin reports whether a cookie that keeps a login is new or has changed. A cookie
// that was removed is no reason to save.
func newLogin(old, now map[string]string) bool {
	for name, value := range now {
		if was, there := old[name]; !there || was != value {
			return true
		}
	}
	return false
}

// poll reads which pages are open and which cookies keep logins. It does not thaw Chrome.
// ok is false if Chrome does not answer.
func (s *Saver) poll(ctx context.Context) (g tabState, ok bool) {
	if !s.status.Navigation && !s.status.Login {
		return g, false
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	b := s.session.Browser(ctx)
	if b == nil {
		return g, false
	}
	pages, err := b.Pages(ctx)
	if err != nil {
		return g, false
	}
	for _, p := range pages {
		g.urls = append(g.urls, p.URL)
	}
	slices.Sort(g.urls)
	if s.status.Login {
		jar, err := b.Cookies(ctx)
		if err != nil {
			return g, false
		}
		g.logins = state.AuthCookies(jar)
	}
	g.known = true
	return g, true
}

// Save makes one automatic checkpoint and records its result. It returns the time until
// the next one (wait) and the time before which no other reason starts one (minWait). After
// a failure it retries sooner, and earlier checkpoints stay. A checkpoint with a problem
// is kept but counts as a failure.
func (s *Saver) Save(ctx context.Context) (wait, minWait time.Duration) {
	wait = s.status.Interval
	minWait = min(wait, minPause)
	id, stored, err := s.session.Save(ctx)
	switch {
	case fault.Is(err, fault.SessionEnding):
		return minWait, minWait // the end saves; if it fails, the session continues
	case errors.Is(err, ErrFrozen), fault.Is(err, fault.SessionNotRunning):
		return wait, minWait // the session's status says why nothing can be saved
	}
	if err == nil {
		s.status.SnapshotID, s.status.At, s.status.Failures, s.status.Error = id, s.now().UTC(), 0, ""
	} else {
		s.status.Failures++
		s.status.Error = fault.MessageOf(err)
	}
	s.session.SetStatus(ctx, s.status)
	if stored {
		s.session.Prune(ctx, s.status.Keep)
	}
	if err != nil {
		s.log.Warn("an automatic checkpoint failed; trying again later", "failures", s.status.Failures, "error", err)
		wait = retryIn(s.status.Interval, s.status.Failures)
		minWait = wait
	}
	return wait, minWait
}

// retryIn returns the time before the next try after this many failures in a row.
func retryIn(interval time.Duration, failures int) time.Duration {
	wait := min(interval, minPause)
	for range min(failures-1, 16) {
		wait = min(2*wait, maxRetryPause)
	}
	return wait
}
