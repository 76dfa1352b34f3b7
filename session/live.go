package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/journal"
	"github.com/stasisd/stasis/state"
)

// live is a running session. One goroutine, run, owns everything below the
// line; others reach it through ask.
type live struct {
	svc    *Service
	id     string
	userID string
	source *Source
	base   string    // the snapshot it was restored from
	laid   time.Time // when that was in place
	// madeBy is the key that made the session and, where it lives again, the one that resumed it.
	madeBy       []string
	ticketSecret []byte // tickets are made with it, and die with the session

	calls        chan func()
	finished     chan ended
	checkpointed chan checkpointed
	left         chan struct{} // a token when the last client has left; for autosave
	turn         chan struct{} // full while a checkpoint is under way, or asks to be
	done         chan struct{} // closed when the session is no longer live

	// ---
	rec       profiles.Session
	request   Create
	dir       *browser.Dir
	chrome    Chrome         // nil in the state error, when Chrome could not be reopened
	doc       state.Document // with a nil chrome: what was read of it last
	report    *RestoreReport
	clients   int
	inFlight  int             // calls that use the browser
	lent      context.Context // of those calls: ends when an ending begins
	takeBack  context.CancelCauseFunc
	paused    bool
	restarted bool
	crashes   []time.Time     // of late, that its Chrome was started again after
	untold    bool            // a crash that webhooks were not told of
	used      bool            // something may have changed since the last save
	writer    *journal.Writer // of the run that is going on, or was last
	deaf      func()          // ends the hearing of what happens in Chrome
	moved     chan struct{}   // has a value after a navigation
	ending    *ending
	// checkpoint is one that is under way. The ending waits for it.
	checkpoint *checkpointing
	replica    *replica   // of the last checkpoint; nil while one is under way
	auto       *AutoSaved // nil: no automatic ones are asked for
	idle       *time.Timer
	lifetime   *time.Timer
}

func newLive(s *Service, rec profiles.Session, r Create, up upright) *live {
	l := &live{svc: s, id: rec.ID, userID: rec.UserID, madeBy: []string{rec.KeyID}, ticketSecret: newTicketSecret(),
		calls: make(chan func()), finished: make(chan ended), done: make(chan struct{}), moved: make(chan struct{}, 1),
		// Nobody may be there to take it: the daemon may stop meanwhile.
		checkpointed: make(chan checkpointed, 1), turn: make(chan struct{}, 1), left: make(chan struct{}, 1),
		rec: rec, request: r, dir: up.chrome.Dir(), chrome: up.chrome, report: up.report,
		idle: time.NewTimer(r.Idle), lifetime: time.NewTimer(r.Lifetime)}
	l.request.Overrides, l.request.installed, l.request.partial = up.overrides, up.extensions, up.partial
	l.lent, l.takeBack = context.WithCancelCause(s.ctx)
	if r.AutoSave != nil {
		l.auto = &AutoSaved{AutoSave: *r.AutoSave}
	}
	if up.report != nil {
		l.source, l.base, l.laid = &up.report.Source, rec.BaseSnapshotID, up.laid
	}
	return l
}

// run is the session's goroutine.
func (l *live) run() {
	defer close(l.done)
	defer func() { l.takeBack(nil) }()
	defer l.idle.Stop()
	defer l.lifetime.Stop()
	for {
		var gone, stopped <-chan struct{}
		if l.ending == nil {
			stopped = l.svc.ctx.Done()
			if l.chrome != nil {
				gone = l.chrome.Done()
			}
		}
		select {
		case call := <-l.calls:
			select {
			case <-gone: // who was told so, and asks at once, is not told that it runs
				l.crash()
			default:
			}
			call()
		case <-gone:
			l.crash()
		case <-l.idle.C:
			if !l.busy() && !l.paused && l.ending == nil {
				l.begin(ending{cause: causeIdle})
			}
		case <-l.lifetime.C:
			if l.ending == nil {
				l.begin(ending{cause: causeLifetime})
			}
		case c := <-l.checkpointed:
			l.finishCheckpoint(c)
		case e := <-l.finished:
			if l.finish(e) {
				return
			}
		case <-stopped:
			l.leave()
			return
		}
	}
}

// leave ends Chrome unsaved when the daemon must stop now. The datadir and the
// record of a live session stay, for the next start to rescue.
func (l *live) leave() {
	l.dropReplica()
	l.svc.forget(l)
	l.deaf()
	l.writer.Leave(context.Background())
	if l.chrome == nil {
		return
	}
	if err := l.chrome.Kill(context.Background()); err != nil {
		l.svc.Log.Error("a Chrome could not be ended", "session", l.id, "error", err)
	}
}

// ask runs f on the session's goroutine and returns its error; a session that
// has ended meanwhile is session_not_running.
func (l *live) ask(ctx context.Context, f func() error) error {
	answer := make(chan error, 1)
	select {
	case l.calls <- func() { answer <- f() }:
		return <-answer
	case <-l.done:
		return notRunning(l.id)
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Timeout, "session.ask", "the session did not answer in time")
	}
}

func notRunning(id string) error {
	return fault.New(fault.SessionNotRunning, "session.use", "session %s is not running", id)
}

// busy reports whether anybody uses the session, on whose account the idle
// limit does not run.
func (l *live) busy() bool { return l.clients > 0 || l.inFlight > 0 }

// touch starts the idle limit anew.
func (l *live) touch() { l.idle.Reset(l.request.Idle) }

// use lends the browser to a call. The call runs outside the session's
// goroutine, so that a slow page holds nobody else up. A paused session thaws
// for as long as the call takes. A call that is under way when the session is
// ended is given up: the Chrome may be parked, and another session's next.
func (l *live) use(ctx context.Context, do func(context.Context, Chrome) error) error {
	var (
		chrome Chrome
		lent   context.Context
	)
	l.awaitRestart(ctx)
	if err := l.ask(ctx, func() error {
		if err := l.usable(); err != nil {
			return err
		}
		if err := l.thaw(); err != nil {
			return err
		}
		chrome, lent = l.chrome, l.lent
		l.inFlight++
		l.used = true
		return nil
	}); err != nil {
		return err
	}
	defer func() {
		// A session that has ended meanwhile has nothing to be told.
		_ = l.ask(context.WithoutCancel(ctx), func() error {
			l.inFlight--
			l.touch()
			return l.settleFreeze()
		})
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(lent, cancel)()
	err := do(ctx, chrome)
	if err != nil && lent.Err() != nil {
		return takenBack(lent, err, "session.use")
	}
	return err
}
