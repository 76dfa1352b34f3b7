package events

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

const (
	// batchDelay is how long an event waits for others, so that they are written
	// together. A batch of batchSize events does not wait longer.
	batchDelay = 100 * time.Millisecond
	batchSize  = 64
	// retryDelay is the time between tries if the catalogue refuses a batch. endDeadline
	// is how long the end of a run is tried.
	retryDelay  = time.Second
	endDeadline = 10 * time.Second
)

// Writer writes the events of one run. Its methods are safe for concurrent use. Only End
// and Detach wait.
type Writer struct {
	j         *Journal
	id        string
	sessionID string
	at        time.Time // when the run began

	wake    chan struct{}
	flushes chan chan struct{}
	ending  chan writerEnd
	done    chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	queue  []queuedEvent
	bytes  int // of the page events in queue
	flood  flood
	closed bool // accepts no more events

	// Used only by the writer's own goroutine:
	recorded bool // the run is in the catalogue
	failing  bool // the last write failed and was logged
}

// queuedEvent is an event that is not written yet.
type queuedEvent struct {
	kind string
	at   time.Time
	data Fields
	page bool // it is a page event
	size int  // of a page event's data, in bytes, approximately
}

// writerEnd says how a writer ends; a nil end leaves the run open.
type writerEnd struct {
	ctx context.Context
	end *profiles.RunEnd
}

// Begin begins a run of a session, which must have no current run. The session counts as
// live until [Journal.SessionEnded]. Begin does not wait for the catalogue: the writer's
// goroutine records the run.
func (j *Journal) Begin(sessionID string) *Writer {
	now := j.now().UTC()
	w := &Writer{j: j, id: uuid.Must(uuid.NewV7()).String(), sessionID: sessionID, at: now,
		wake: make(chan struct{}, 1), flushes: make(chan chan struct{}), ending: make(chan writerEnd, 1), done: make(chan struct{})}
	w.flood.begin(now)
	j.mu.Lock()
	j.writers[sessionID], j.live[sessionID] = w, true
	j.mu.Unlock()
	go w.loop()
	return w
}

// Record records an event of the daemon or of a caller. It does not wait.
func (w *Writer) Record(kind string, data Fields) { w.enqueue(kind, data, false, maxRecorded) }

// Observe records an event of a page. It does not wait. Pages can make any number of
// events, so those above a rate are dropped and counted. An event of type dropped reports
// the count.
func (w *Writer) Observe(kind string, data Fields) {
	w.mu.Lock()
	allowed := w.flood.allows(w.j.now())
	if !allowed && !w.closed {
		w.flood.drop(kind, 1)
	}
	w.mu.Unlock()
	if allowed {
		w.enqueue(kind, data, true, maxObserved)
	}
}

// CountDropped counts events that were dropped before they reached the writer.
func (w *Writer) CountDropped(kind string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flood.drop(kind, n)
}

func (w *Writer) enqueue(kind string, data Fields, page bool, limit int) {
	t := queuedEvent{kind: kind, at: w.j.now().UTC(), data: data, page: page}
	if page {
		t.size = data.size()
	}
	w.mu.Lock()
	switch {
	case w.closed:
	case len(w.queue) >= limit, page && w.bytes+t.size > maxWaiting:
		w.flood.drop(kind, 1)
	default:
		w.queue, w.bytes = append(w.queue, t), w.bytes+t.size
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// End ends the run. It waits until the end and all earlier events are written, or until
// ctx or the deadline ends. A second call does nothing.
func (w *Writer) End(ctx context.Context, status profiles.RunStatus, cause string) {
	now := w.j.now().UTC()
	w.close(ctx, &profiles.RunEnd{RunID: w.id, Status: status, Cause: cause, EndedAt: now, Last: []profiles.Event{EndedEvent(status, cause, now)}})
}

// EndedEvent returns the last event of a run.
func EndedEvent(status profiles.RunStatus, cause string, at time.Time) profiles.Event {
	data, _ := json.Marshal(map[string]string{"status": string(status), "cause": cause}) // strings always marshal
	return profiles.Event{Type: Ended, At: at, Data: data}
}

// Detach ends the writer but not the run; the next start of the daemon ends the run.
func (w *Writer) Detach(ctx context.Context) { w.close(ctx, nil) }

func (w *Writer) close(ctx context.Context, end *profiles.RunEnd) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endDeadline)
	defer cancel()
	select {
	case w.ending <- writerEnd{ctx, end}:
	default: // it is ending already
	}
	select {
	case <-w.done:
	case <-ctx.Done(): // the writer ends when the catalogue answers
	}
}

// flush waits until all events so far are written.
func (w *Writer) flush(ctx context.Context) {
	written := make(chan struct{})
	select {
	case w.flushes <- written:
	case <-w.done:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-written:
	case <-w.done:
	case <-ctx.Done():
	}
}

// loop is the writer's goroutine.
func (w *Writer) loop() {
	defer close(w.done)
	pending := w.write(context.Background(), nil) // records the run at once, so that it can be listed before its first event
	delay := time.NewTimer(0)
	defer delay.Stop()
	<-delay.C
	for waiting := false; ; {
		select {
		case <-w.wake:
			switch n := w.queued(); {
			case n >= batchSize && len(pending) == 0:
				pending, waiting = w.write(context.Background(), pending), false
				delay.Stop()
			case !waiting && (n > 0 || len(pending) > 0):
				waiting = true
				delay.Reset(batchDelay)
			}
		case <-delay.C:
			pending, waiting = w.write(context.Background(), pending), false
		case written := <-w.flushes:
			pending = w.write(context.Background(), pending)
			close(written)
		case c := <-w.ending:
			w.finish(c, pending)
			return
		}
		if len(pending) > 0 && !waiting { // the catalogue refused them
			waiting = true
			delay.Reset(retryDelay)
		}
	}
}

func (w *Writer) queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}

// take empties the queue and returns its events, masked and ready to be written. It adds
// the count of dropped events if that is due or last is set.
func (w *Writer) take(last bool) []profiles.Event {
	now := w.j.now().UTC()
	w.mu.Lock()
	batch := w.queue
	w.queue, w.bytes = nil, 0
	if dropped := w.flood.takeDropped(now, last); dropped != nil {
		batch = append(batch, queuedEvent{kind: Dropped, at: now, data: dropped})
	}
	w.mu.Unlock()
	events := make([]profiles.Event, 0, len(batch))
	for _, t := range batch {
		events = append(events, w.j.event(t))
	}
	return events
}

// write writes the pending events, then those in the queue, and returns those that the
// catalogue refused. As long as the catalogue refuses them, the queue fills and further
// events are dropped.
func (w *Writer) write(ctx context.Context, pending []profiles.Event) []profiles.Event {
	if len(pending) > 0 {
		if pending = w.put(ctx, pending); len(pending) > 0 {
			return pending
		}
	}
	return w.put(ctx, w.take(false))
}

// put writes events, and returns them if the catalogue refuses them.
func (w *Writer) put(ctx context.Context, pending []profiles.Event) []profiles.Event {
	err := w.ensureRun(ctx)
	if err == nil && len(pending) > 0 {
		_, err = w.j.store.AddEvents(ctx, w.id, pending, Keep)
	}
	if err != nil {
		if !w.failing {
			w.j.log.Error("cannot write events to the catalogue; trying again", "session", w.sessionID, "error", err)
		}
		w.failing = true
		return pending
	}
	w.failing = false
	w.j.wake(w.sessionID)
	return nil
}

// ensureRun records the run, once.
func (w *Writer) ensureRun(ctx context.Context) error {
	if w.recorded {
		return nil
	}
	_, err := w.j.store.BeginRun(ctx, profiles.Run{ID: w.id, SessionID: w.sessionID, StartedAt: w.at})
	w.recorded = err == nil
	return err
}

// finish writes the last events and ends the run.
func (w *Writer) finish(c writerEnd, pending []profiles.Event) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	pending = append(pending, w.take(true)...)
	for {
		err := w.last(c, pending)
		if err == nil {
			break
		}
		if c.end == nil && fault.Is(err, fault.NodeLost) { // the node that has the session now has ended the run
			w.j.log.Warn("the last events of a session that another node has taken over are not recorded", "session", w.sessionID, "events", len(pending))
			break
		}
		select {
		case <-time.After(retryDelay):
			continue
		case <-c.ctx.Done():
			w.j.log.Error("the end of a run could not be recorded; the next start of the daemon records it", "session", w.sessionID, "error", err)
		}
		break
	}
	w.j.mu.Lock()
	if w.j.writers[w.sessionID] == w {
		delete(w.j.writers, w.sessionID)
	}
	w.j.mu.Unlock()
	w.j.wake(w.sessionID)
}

// last writes the remaining events, in one transaction with the end of the run.
func (w *Writer) last(c writerEnd, pending []profiles.Event) error {
	err := w.ensureRun(c.ctx)
	switch {
	case err != nil:
	case c.end != nil:
		end := *c.end
		end.Last = append(pending[:len(pending):len(pending)], c.end.Last...)
		_, err = w.j.store.EndRun(c.ctx, end, Keep)
	case len(pending) > 0:
		_, err = w.j.store.AddEvents(c.ctx, w.id, pending, Keep)
	}
	return err
}
