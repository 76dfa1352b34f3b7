package session

import (
	"context"
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// How automatic checkpoints are spread. All of it is by timers: a clock that is
// set back neither stops them nor makes them many.
const (
	lookEvery  = time.Second     // how often tabs and cookies are looked at
	lookWithin = 2 * time.Second // how long such a look may take
	autoSettle = time.Second     // after a navigation or a login, for the page to come to something
	autoRest   = 5 * time.Second // between two of them at least, and before the first retry: no reason comes before either
	autoPause  = 5 * time.Minute // before a retry at most
)

// AutoSave asks for checkpoints that the daemon makes by itself.
type AutoSave struct {
	Interval time.Duration
	// Each of these is a reason for one before the interval is over.
	Navigation, Login, Disconnect bool
	Keep                          int // how many of a session are kept
}

// AutoSaved tells what became of them.
type AutoSaved struct {
	AutoSave
	SnapshotID string    // of the newest; "": there is none yet
	At         time.Time // when it was made, or found to be true still
	Failures   int       // in a row, since then
	Error      string    // of the last failure
}

// autosave makes the session's automatic checkpoints, one after the other, until
// the session ends.
func (l *live) autosave(a AutoSave, persist bool) {
	next, rest, look := time.NewTimer(a.Interval), time.NewTimer(0), time.NewTicker(lookEvery)
	defer next.Stop()
	defer rest.Stop()
	defer look.Stop()
	last, _ := l.look(a) // at once: who logs in soon is seen to
	resting, wanted := true, false
	want := func(in time.Duration) {
		if !wanted && !resting {
			next.Reset(in)
		}
		wanted = true
	}
	for {
		select {
		case <-rest.C:
			if resting = false; wanted {
				next.Reset(0)
			}
		case <-l.left:
			if a.Disconnect {
				want(0)
			}
		case <-look.C:
			if now, ok := l.look(a); ok {
				if last.known && (a.Navigation && !slices.Equal(now.urls, last.urls) || a.Login && newLogin(last.logins, now.logins)) {
					want(autoSettle)
				}
				last = now
			}
		case <-next.C:
			wait, least := l.saveItself(a, CheckpointRequest{auto: true, SaveAsDefault: persist, Conflict: ConflictKeep})
			next.Reset(wait)
			rest.Reset(least)
			resting, wanted = true, false
		case <-l.done:
			return
		case <-l.svc.ctx.Done():
			return
		}
	}
}

// glimpse is what a look at a session shows.
type glimpse struct {
	known  bool
	urls   []string
	logins map[string]string // state.AuthCookies
}

// newLogin reports whether a cookie that keeps a login has come or changed. One
// that is gone is no reason to save.
func newLogin(old, now map[string]string) bool {
	for name, value := range now {
		if was, there := old[name]; !there || was != value {
			return true
		}
	}
	return false
}

// look sees which pages are open and which cookies keep logins. It wakes nobody,
// and is no use of the session. What is not answered is not seen.
func (l *live) look(a AutoSave) (g glimpse, ok bool) {
	if !a.Navigation && !a.Login {
		return g, false
	}
	var chrome browsers.Chrome
	ctx, cancel := context.WithTimeout(l.svc.ctx, lookWithin)
	defer cancel()
	if l.ask(ctx, func() error {
		if l.usable() == nil && l.checkpoint == nil {
			chrome = l.chrome
		}
		return nil
	}) != nil || chrome == nil || chrome.Frozen() {
		return g, false
	}
	pages, err := chrome.Pages(ctx)
	if err != nil {
		return g, false
	}
	for _, p := range pages {
		g.urls = append(g.urls, p.URL)
	}
	slices.Sort(g.urls)
	if a.Login {
		jar, err := chrome.Cookies(ctx)
		if err != nil {
			return g, false
		}
		g.logins = state.AuthCookies(jar)
	}
	g.known = true
	return g, true
}

// saveItself makes one automatic checkpoint, tells what came of it, and returns
// when the next is due, and how long no reason brings one on. One that fails leaves
// the earlier ones and is tried again; so is one with a flaw, which is kept.
func (l *live) saveItself(a AutoSave, r CheckpointRequest) (wait, least time.Duration) {
	ctx := l.svc.ctx
	wait, least = a.Interval, min(a.Interval, autoRest)
	var chrome browsers.Chrome
	if err := l.ask(ctx, func() error { chrome = l.chrome; return nil }); err != nil || chrome != nil && chrome.Frozen() {
		return wait, least // nothing changes while it stands still
	}
	answer, err := l.save(ctx, r)
	switch {
	case fault.Is(err, fault.SessionEnding):
		return least, least // the end saves, or fails, and the session lives on
	case fault.Is(err, fault.SessionNotRunning):
		return wait, least // an error says why nothing can be saved
	}
	stored := err == nil && !answer.Unchanged
	if err == nil {
		err = flawed(answer.flaw, r.SaveAsDefault)
	}
	failures := 0
	_ = l.ask(ctx, func() error { // a session that has ended meanwhile has nothing to be told
		if err == nil {
			l.auto.SnapshotID, l.auto.At, l.auto.Failures, l.auto.Error = answer.Snapshot.ID, l.svc.Now().UTC(), 0, ""
			return nil
		}
		l.auto.Failures++
		l.auto.Error = fault.MessageOf(err)
		failures = l.auto.Failures
		return nil
	})
	if stored {
		l.svc.pruner.PruneCheckpoints(ctx, l.id, a.Keep)
	}
	if err != nil {
		l.svc.Log.Warn("an automatic checkpoint failed", "session", l.id, "failures", failures, "error", err)
		wait = retryIn(a.Interval, failures)
		least = wait
	}
	return wait, least
}

// retryIn is how long is waited after so many failures in a row.
func retryIn(interval time.Duration, failures int) time.Duration {
	wait := min(interval, autoRest)
	for range min(failures-1, 16) {
		wait = min(2*wait, autoPause)
	}
	return wait
}
