// Package auditlog records who did what: the calls of the API, and what the daemon does by
// itself. Each entry has the hash of the one before ([profiles.AuditChain]).
//
// [Log.Record] does not wait. One goroutine writes entries in batches to the catalogue, and
// what the catalogue has accepted to files or syslog (see [Sink]). repeats.go bounds the
// entries of acts that pages and strangers can repeat at will.
package auditlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// maxQueued is how many entries wait while the catalogue accepts none. Further ones are
// counted, and an entry with their count follows.
const maxQueued = 10_000

// Entry is an entry of the log, as callers see it.
type Entry = profiles.AuditEntry

// Filter selects entries.
type Filter = profiles.AuditFilter

// Outcome is how an act ended.
type Outcome = profiles.AuditOutcome

// Config is what a Log needs.
type Config struct {
	Store  profiles.AuditStore
	Owners Owners
	Keep   time.Duration // how long an entry is kept; 0: always
	Sinks  []Sink        // an open Log closes them
	Detail string        // of the entry that says that the daemon has started
	Now    func() time.Time
	Log    *slog.Logger
}

// Log is the audit log of a daemon. Its methods are safe for concurrent use. The caller
// must call Close.
type Log struct {
	cfg    Config
	owners owners

	wake    chan struct{}
	flushes chan chan struct{}
	closing chan context.Context
	done    chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	queue   []profiles.AuditEntry
	repeats repeats
	lost    int64 // entries that no entry counts yet
	state   State
	closed  bool

	writer writer // used only by the goroutine, after Open
}

// State describes the log for operators.
type State struct {
	Failing bool  // the catalogue accepts no entries
	Waiting int   // entries that are not written yet
	Lost    int64 // entries lost since the daemon has started
}

// Open begins to record, with an entry that says that the daemon has started. It fails if
// the catalogue cannot be read.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	head, err := cfg.Store.AuditHead(ctx)
	if err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, owners: newOwners(cfg.Owners), repeats: newRepeats(),
		wake: make(chan struct{}, 1), flushes: make(chan chan struct{}), closing: make(chan context.Context, 1), done: make(chan struct{})}
	l.writer = writer{l: l, head: head, headKnown: true}
	for _, s := range cfg.Sinks {
		f, err := newFollower(ctx, s, head, cfg)
		if err != nil {
			return nil, err
		}
		l.writer.followers = append(l.writer.followers, f)
	}
	l.Record(Act{Call: Started, Detail: cfg.Detail})
	go l.writer.loop()
	return l, nil
}

// Record records an act. It does not wait.
func (l *Log) Record(a Act) {
	now := l.cfg.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.Repeats != nil {
		l.enqueue(l.repeats.add(a, now)...)
	} else {
		l.enqueue(a.entry(now, 1))
	}
}

// enqueue adds entries to the queue. The caller holds the lock.
func (l *Log) enqueue(entries ...profiles.AuditEntry) {
	for _, e := range entries {
		if l.closed || len(l.queue) >= maxQueued {
			l.lost += e.Count
			l.state.Lost += e.Count
			continue
		}
		l.queue = append(l.queue, e)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// UserOf returns the user of a session or a snapshot; "" if it is not known.
func (l *Log) UserOf(ctx context.Context, sessionID, snapshotID string) string {
	return l.owners.of(ctx, sessionID, snapshotID)
}

// State returns how the log does.
func (l *Log) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.Waiting += len(l.queue)
	return s
}

// Page returns a page of the log as of now, for callers that may administer.
func (l *Log) Page(ctx context.Context, c access.Caller, f profiles.AuditFilter) (page []profiles.AuditEntry, next int64, err error) {
	if err := c.Require(access.Administer); err != nil {
		return nil, 0, err
	}
	l.flush(ctx)
	return l.cfg.Store.AuditPage(ctx, f)
}

// flush returns when all entries so far are written, when the catalogue refuses them, or
// when ctx ends.
func (l *Log) flush(ctx context.Context) {
	written := make(chan struct{})
	select {
	case l.flushes <- written:
	case <-l.done:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-written:
	case <-l.done:
	case <-ctx.Done():
	}
}

// Close records that the daemon stops, and writes what waits. It tries until ctx or its own
// deadline ends. What is not written then is lost, and the daemon's log has the count.
func (l *Log) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeDeadline)
	defer cancel()
	select {
	case l.closing <- ctx:
	default: // it is closing already
	}
	<-l.done
	return nil
}
