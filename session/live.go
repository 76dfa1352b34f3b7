package session

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/queue"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/run"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// recordDeadline bounds how long the catalogue may take for one write of a session.
const recordDeadline = 30 * time.Second

// liveSession is a running session. One goroutine, run, owns everything below the line;
// other goroutines reach it through ask and askAndWait. That goroutine changes memory
// only. Slow work runs on other goroutines and reports back: endings, checkpoints,
// reopenings, and the tasks of two queues.
type liveSession struct {
	svc        *Service
	id         string
	rights     *access.LiveSession
	restoredAt time.Time         // when the snapshot it began with was restored; zero: it began empty
	egress     browser.Egress    // what it may connect to
	limits     browser.Limits    // what its browser may use
	installed  []state.Extension // its extensions, restored and named ones
	viewers    viewers
	// partial reports that the session has only some origins of its environment, so it
	// differs from the default.
	partial bool
	// readOnly reports that no save of the session is allowed.
	readOnly bool
	moving   atomic.Bool    // it is being ended so that another node continues it
	claim    capacity.Claim // its slot
	socket   reservedSocket // of the client that its create announced

	calls        chan func()
	finished     chan save.EndResult
	checkpointed chan save.CheckpointResult
	reopened     chan reopened
	disconnected chan struct{} // holds a token after the last client has disconnected; for autosave
	turnEnded    chan struct{} // holds a token after a turn of the conversation; for autosave
	turn         chan struct{} // full while a checkpoint is under way or requested
	done         chan struct{} // closed when the session is no longer live
	gone         chan struct{} // closed when nothing of it runs any more

	ctx  context.Context // of its work; ends with the service's, or when another node has taken the session over
	lose context.CancelFunc

	// ---
	rec             profiles.Session
	request         request.Create
	dir             *browser.Dir
	chrome          browsers.Chrome // nil in status error, when Chrome could not be reopened
	doc             state.Document  // with a nil chrome: what was last read of it
	report          *restore.Report
	clients         int
	inFlight        int             // calls that use the browser now
	useCtx          context.Context // the context of those calls; ends when an ending begins
	cancelUse       context.CancelCauseFunc
	paused          bool
	thawed          bool // Chrome is known to run, so that clients may use it
	restarted       bool
	crashes         []time.Time // recent crashes after which Chrome was started again
	crashUnreported bool        // webhooks were not notified of a crash
	used            bool        // the browser was used since the last save
	turns           int         // how many turns of the conversation have ended
	runs            *run.Runs
	audit           sessionAudit
	ending          *ending
	ended           bool // the session has ended; run only finishes the queues
	// checkpoint and reopening are under way unless nil. An ending waits for them.
	checkpoint  *checkpointing
	reopening   *reopening
	freezeQueue *queue.Queue     // freezes and thaws Chrome
	recordQueue *queue.Queue     // writes to the catalogue
	memory      measured         // of Chrome, for descriptions of the session
	replica     *save.Replica    // of the last checkpoint; nil while one is under way
	auto        *autosave.Status // nil: automatic checkpoints were not requested
	idle        *time.Timer
	lifetime    *time.Timer
}

func newLiveSession(s *Service, rec profiles.Session, r request.Create, q restore.Request, up restore.StartResult) *liveSession {
	l := &liveSession{svc: s, id: rec.ID, rights: access.NewLiveSession(rec.ID, rec.UserID, rec.KeyID, s.deps.Now),
		calls: make(chan func()), finished: make(chan save.EndResult), done: make(chan struct{}),
		// Buffered, because run may have ended when the daemon stops.
		checkpointed: make(chan save.CheckpointResult, 1), reopened: make(chan reopened, 1), turn: make(chan struct{}, 1), disconnected: make(chan struct{}, 1), turnEnded: make(chan struct{}, 1),
		thawed: true, gone: make(chan struct{}),
		rec: rec, request: r, restarted: r.IsAfterLoss(), egress: q.Egress, limits: q.Limits, dir: up.Chrome.Dir(), chrome: up.Chrome, report: up.Report,
		idle: time.NewTimer(r.Idle), lifetime: time.NewTimer(r.Lifetime)}
	l.ctx, l.lose = context.WithCancel(s.ctx)
	l.freezeQueue, l.recordQueue = queue.New(l.ctx, restore.ThawDeadline, s.work.Go), queue.New(l.ctx, recordDeadline, s.work.Go)
	l.request.Overrides, l.installed, l.partial, l.readOnly = up.Overrides, up.Extensions, up.Partial, r.ReadOnly
	l.audit = sessionAudit{s.deps.Audit, rec.ID, rec.UserID}
	l.runs = run.New(rec.ID, s.deps.Journal, l.audit.page, s.deps.Log)
	l.useCtx, l.cancelUse = context.WithCancelCause(l.ctx)
	if r.AutoSave != nil {
		l.auto = &autosave.Status{Settings: *r.AutoSave}
	}
	if up.Report != nil {
		l.restoredAt = up.At
	}
	return l
}

// options returns the options of a Chrome that replaces the session's Chrome. Its tabs
// are always reopened, whatever the create said of the first Chrome.
func (l *liveSession) options() browser.Options {
	return browser.Options{Owner: profiles.OwnerOf(l.rec.UserID), Engine: l.request.Engine, RestoreTabs: true, Overrides: l.request.Overrides, Passkeys: l.request.Passkeys, Extensions: l.installed, Egress: l.egress, Limits: l.limits}
}

// start begins the session's first run and its background work.
func (l *liveSession) start(up restore.StartResult) {
	l.beginRun()
	l.svc.work.Go(l.run)
	if slices.Contains(l.request.Record, RecordScreenshot) {
		l.svc.work.Go(l.pictures)
	}
	if set, persist := l.request.AutoSave, l.request.Persist; set != nil {
		l.svc.work.Go(func() { l.autosave(*set, persist).Run(l.ctx) })
	}
	if up.Report != nil {
		l.beginVerifying(up.Document)
	}
}

// run is the session's goroutine.
func (l *liveSession) run() {
	abandoned := false
	defer func() {
		if !abandoned {
			l.lose()
			close(l.gone)
		}
	}()
	defer close(l.done)
	defer func() { l.cancelUse(nil) }()
	defer l.idle.Stop()
	defer l.lifetime.Stop()
	for !l.ended || l.freezeQueue.Len() > 0 || l.recordQueue.Len() > 0 {
		var gone, full, stopped <-chan struct{}
		if l.ending == nil && l.chrome != nil {
			gone, full = l.chrome.Done(), l.chrome.Usage().DiskFull()
		}
		if l.ending == nil && l.checkpoint == nil && l.reopening == nil && l.freezeQueue.Len() == 0 && l.recordQueue.Len() == 0 {
			stopped = l.ctx.Done()
		}
		calls := l.calls
		if l.ended {
			calls = nil
		}
		select {
		case call := <-calls:
			select {
			case <-gone: // after a crash is reported, status must not say "running"
				l.crash()
			default:
			}
			call()
		case <-gone:
			l.crash()
		case <-full:
			l.begin(overDisk(l.limits.Disk))
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
		case r := <-l.reopened:
			l.finishReopening(r)
		case err := <-l.freezeQueue.Reports():
			l.freezeQueue.Finish(err)
		case err := <-l.recordQueue.Reports():
			l.recordQueue.Finish(err)
		case e := <-l.finished:
			l.finish(e)
		case <-stopped:
			abandoned = true
			l.stopUnsaved()
			return
		}
	}
}

// stopUnsaved ends Chrome unsaved when the daemon must stop now, or another node has taken the
// session over. The user data directory
// and the record of the live session stay, so that the next start rescues the session.
func (l *liveSession) stopUnsaved() {
	l.svc.forget(l)
	l.svc.work.Go(func() {
		defer close(l.gone)
		l.abandon()
	})
}

// killDeadline bounds how long a Chrome may take to end when the daemon must stop.
const killDeadline = 10 * time.Second

// abandon cleans up after the session's goroutine has ended.
func (l *liveSession) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), killDeadline)
	defer cancel()
	l.runs.StopListening()
	if l.chrome != nil {
		if err := l.chrome.Kill(ctx); err != nil {
			l.svc.deps.Log.Error("cannot end a Chrome; the next start of the daemon ends it", "session", l.id, "error", err)
		}
	}
	l.runs.Detach(ctx) // last, because the catalogue may not answer
	l.svc.saver.DropReplica(l.replica)
}

// ask runs f on the session's goroutine and returns its error. If the session has ended
// meanwhile, the error is session_not_running, or ErrMoving if it has moved. f changes memory
// only, so ask waits for it once it has begun; ctx bounds the time until then.
func (l *liveSession) ask(ctx context.Context, f func() error) error {
	answer := make(chan error, 1)
	select {
	case l.calls <- func() { answer <- f() }:
		return <-answer
	case <-l.done:
		if l.moving.Load() {
			return ErrMoving
		}
		return notRunning(l.id)
	case <-ctx.Done():
		return notInTime(ctx)
	}
}

// askAndWait runs f on the session's goroutine and waits until f, or a task that f has
// added, calls reply. What was begun continues even if ctx ends first.
func (l *liveSession) askAndWait(ctx context.Context, f func(reply func(error))) error {
	answer := make(chan error, 1)
	if err := l.ask(ctx, func() error {
		f(func(err error) { answer <- err })
		return nil
	}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return notInTime(ctx)
	}
}

func notInTime(ctx context.Context) error {
	return fault.Wrap(ctx.Err(), fault.Timeout, "session.ask", "the session did not answer in time; try again")
}

func notRunning(id string) error {
	return fault.New(fault.SessionNotRunning, "session.use", "session %s is not running", id)
}

// busy reports whether the session is in use, so that the idle limit does not apply.
func (l *liveSession) busy() bool { return l.clients > 0 || l.inFlight > 0 || l.reopening != nil }

// touch restarts the idle limit.
func (l *liveSession) touch() { l.idle.Reset(l.request.Idle) }

// use runs a call with the browser. The call runs outside the session's goroutine, so that
// a slow page delays no other call. A paused session is thawed for the time of the call.
// When the session ends, the call is cancelled, because the Chrome may be parked and
// become another session's.
func (l *liveSession) use(ctx context.Context, do func(context.Context, browsers.Chrome) error) error {
	chrome, useCtx, giveBack, err := l.borrow(ctx)
	if err != nil {
		return err
	}
	defer giveBack()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(useCtx, cancel)()
	err = do(ctx, chrome)
	if err != nil && useCtx.Err() != nil {
		return interrupted(useCtx, err)
	}
	return err
}

// borrow returns the browser, thawed. The caller calls giveBack when it is done. useCtx
// ends when an ending takes the browser back.
func (l *liveSession) borrow(ctx context.Context) (chrome browsers.Chrome, useCtx context.Context, giveBack func(), err error) {
	l.awaitRestart(ctx)
	taken := false
	giveBack = func() {
		// If the session has ended meanwhile, there is nothing to update.
		_ = l.ask(context.WithoutCancel(ctx), func() error {
			l.inFlight--
			l.touch()
			l.freezeIfUnused()
			return nil
		})
	}
	err = l.askAndWait(ctx, func(reply func(error)) {
		if err := l.usable(); err != nil {
			reply(err)
			return
		}
		chrome, useCtx, taken = l.chrome, l.useCtx, true
		l.inFlight++
		l.used = true
		l.thaw(reply)
	})
	if err != nil && taken {
		giveBack()
	}
	return chrome, useCtx, giveBack, err
}
