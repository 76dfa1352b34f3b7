package auditlog

import (
	"context"
	"strconv"
	"time"

	"github.com/stasisd/stasis/profiles"
)

const (
	// batchDelay is how long an entry waits for others, so that they are written together.
	// A batch of batchSize does not wait.
	batchDelay = 100 * time.Millisecond
	batchSize  = 256
	// largestBatch limits one transaction.
	largestBatch = 1000
	// retryDelay is the time between tries if the catalogue, a file or syslog accepts no
	// entries.
	retryDelay = time.Second
	// tickEvery is how often the ends of windows are looked for; pruneEvery, old entries.
	tickEvery  = 5 * time.Second
	pruneEvery = time.Hour
	// closeDeadline limits the writes at the end.
	closeDeadline = 10 * time.Second
)

// writer writes the entries of a Log.
type writer struct {
	l         *Log
	head      profiles.AuditEntry // the last entry in the catalogue, if headKnown
	headKnown bool
	pending   []profiles.AuditEntry // taken from the queue, not written yet
	followers []*follower
	failing   bool
	prunedAt  time.Time
}

// loop is the goroutine of the log.
func (w *writer) loop() {
	defer close(w.l.done)
	ctx := context.Background()
	delay, tick := time.NewTimer(0), time.NewTicker(tickEvery)
	defer delay.Stop()
	defer tick.Stop()
	for waiting := true; ; { // the first write is at once
		select {
		case <-w.l.wake:
			switch {
			case w.l.queued() >= batchSize && !w.failing:
				delay.Reset(0)
				waiting = true
			case !waiting:
				delay.Reset(batchDelay)
				waiting = true
			}
			continue
		case <-delay.C:
			w.write(ctx)
			w.prune(ctx)
		case <-tick.C:
			w.l.sweep(false)
			w.prune(ctx)
			continue
		case written := <-w.l.flushes:
			w.write(ctx)
			w.prune(ctx)
			close(written)
		case ctx := <-w.l.closing:
			w.finish(ctx)
			return
		}
		if waiting = w.behind(); waiting {
			delay.Reset(retryDelay)
		}
	}
}

// behind reports whether something is to be tried again.
func (w *writer) behind() bool {
	for _, f := range w.followers {
		if f.behind {
			return true
		}
	}
	return len(w.pending) > 0
}

func (l *Log) queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// sweep records the counts of repeats whose window has ended, or of all.
func (l *Log) sweep(all bool) {
	now := l.cfg.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if due := l.repeats.sweep(now, all); len(due) > 0 {
		l.enqueue(due...)
	}
}

// take returns the next entries to write, and the count of those that were lost.
func (l *Log) take() []profiles.AuditEntry {
	now := l.cfg.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), largestBatch)
	batch := append([]profiles.AuditEntry(nil), l.queue[:n]...)
	l.queue = l.queue[n:]
	if l.lost > 0 && len(l.queue) == 0 {
		e := Act{Call: Lost}.entry(now, l.lost)
		e.Outcome = profiles.AuditFailed
		batch, l.lost = append(batch, e), 0
	}
	l.state.Waiting = len(batch)
	return batch
}

// setState records the outcome of a write.
func (l *Log) setState(failing bool, waiting int) (lost int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Failing, l.state.Waiting = failing, waiting
	return l.state.Lost
}

// write writes what waits, until the queue is empty or the catalogue refuses it.
func (w *writer) write(ctx context.Context) {
	for {
		if len(w.pending) == 0 {
			w.pending = w.l.take()
		}
		if len(w.pending) == 0 {
			break
		}
		batch := w.pending
		if !w.put(ctx, batch, 0) {
			return
		}
		w.pending = nil
		w.l.setState(false, 0)
	}
	for _, f := range w.followers {
		f.catchUp(ctx, w.head)
	}
}

// put chains entries to the log and adds them to the catalogue. After an error it is not
// known whether the catalogue has them: the next call looks.
func (w *writer) put(ctx context.Context, batch []profiles.AuditEntry, drop int64) bool {
	if !w.headKnown {
		head, err := w.l.cfg.Store.AuditHead(ctx)
		if err != nil {
			return w.failed(err)
		}
		w.head, w.headKnown = head, true
		switch has, err := w.has(ctx, batch[len(batch)-1]); {
		case err != nil:
			w.headKnown = false
			return w.failed(err)
		case has:
			return w.succeeded()
		}
	}
	last := w.head
	for i := range batch {
		batch[i].Follow(last)
		last = batch[i]
	}
	if err := w.l.cfg.Store.AddAudit(ctx, batch, drop); err != nil {
		w.headKnown = false
		return w.failed(err)
	}
	w.head = batch[len(batch)-1] // a node's entries may follow those of another node
	for _, f := range w.followers {
		f.take(batch)
	}
	return w.succeeded()
}

// has reports whether the catalogue has an entry, which it may have accepted although the
// connection was lost. On nodes, entries of others may have followed it.
func (w *writer) has(ctx context.Context, e profiles.AuditEntry) (bool, error) {
	if e.Number == 0 || e.Number >= w.head.Number {
		return e.Number > 0 && e.Hash == w.head.Hash, nil
	}
	page, _, err := w.l.cfg.Store.AuditPage(ctx, profiles.AuditFilter{StartAfter: e.Number - 1, OldestFirst: true, Limit: 1})
	return err == nil && len(page) == 1 && page[0].Hash == e.Hash, err
}

func (w *writer) failed(err error) bool {
	lost := w.l.setState(true, len(w.pending))
	if !w.failing {
		w.l.cfg.Log.Error("cannot write the audit log to the catalogue; trying again", "waiting", w.l.State().Waiting, "lost", lost, "error", err)
	}
	w.failing = true
	return false
}

func (w *writer) succeeded() bool {
	if w.failing {
		w.l.cfg.Log.Info("the audit log is written again", "lost", w.l.State().Lost)
	}
	w.failing = false
	return true
}

// prune deletes old entries from time to time. The entry that says so begins the rest of
// the log, see [profiles.AuditChain.CheckBegin].
func (w *writer) prune(ctx context.Context) {
	now := w.l.cfg.Now()
	if w.l.cfg.Keep == 0 || len(w.pending) > 0 || !w.prunedAt.IsZero() && now.Sub(w.prunedAt) < pruneEvery {
		return
	}
	w.prunedAt = now
	old, err := w.l.cfg.Store.OldAudit(ctx, now.Add(-w.l.cfg.Keep))
	if err != nil {
		w.l.cfg.Log.Warn("old entries of the audit log could not be deleted; the next try is in an hour", "error", err)
		return
	}
	if old.Number == 0 {
		return
	}
	e := Act{Call: profiles.AuditPruned, Object: strconv.FormatInt(old.Number, 10), Detail: old.Hash.String()}.entry(now, 1)
	if !w.put(ctx, []profiles.AuditEntry{e}, old.Number) {
		w.pending = nil // the next prune makes the entry anew
	}
}

// finish writes the last entries.
func (w *writer) finish(ctx context.Context) {
	w.l.sweep(true)
	w.l.Record(Act{Call: Stopped})
	w.l.mu.Lock()
	w.l.closed = true
	w.l.mu.Unlock()
	for {
		w.write(ctx)
		if !w.behind() {
			break
		}
		select {
		case <-time.After(retryDelay):
			continue
		case <-ctx.Done():
		}
		break
	}
	if left := w.l.State(); left.Waiting > 0 {
		w.l.cfg.Log.Error("entries of the audit log could not be written and are lost", "entries", left.Waiting)
	}
	for _, f := range w.followers {
		f.close()
	}
}
