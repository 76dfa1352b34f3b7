package mux

import (
	"slices"
	"sync"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
)

// Event is one event of a driver's session. SessionID is empty for the
// browser's own.
type Event struct {
	SessionID target.SessionID
	Method    string
	Params    jsonv2.Value
}

// subscription wants some events of a driver.
type subscription struct {
	session string // whose; of any session if all
	all     bool
	methods []string
	queue   interface {
		finish()
		stop()
	}
	push func(Event)
}

// Events gives the events with these methods of all the driver's sessions, in
// the order of arrival, buffered without bound, until cancel, Close of the
// driver or the end of Chrome; the channel is then closed.
func (d *Driver) Events(methods ...string) (events <-chan Event, cancel func()) {
	q := newQueue[Event]()
	return q.out, d.add(&subscription{all: true, methods: methods, queue: q, push: q.push}, q.pump)
}

func (d *Driver) subscribe(session, method string) (<-chan jsonv2.Value, func()) {
	q := newQueue[jsonv2.Value]()
	s := &subscription{session: session, methods: []string{method}, queue: q, push: func(e Event) { q.push(e.Params) }}
	cancel := d.add(s, q.pump)
	if session != "" && d.m.lookup(&d.peer, []byte(session)) == nil {
		q.finish() // it has been detached already
	}
	return q.out, cancel
}

func (d *Driver) add(s *subscription, pump func()) (cancel func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		s.queue.finish()
	} else {
		d.subs[s] = struct{}{}
	}
	d.pumps.Go(pump)
	return func() {
		d.mu.Lock()
		delete(d.subs, s)
		d.mu.Unlock()
		s.queue.stop()
	}
}

// publish takes an event off Chrome; it never waits for a subscriber.
func (d *Driver) publish(_ []byte, e envelope) {
	ev := Event{SessionID: target.SessionID(e.session), Method: string(e.method), Params: jsonv2.Value(e.params)}
	if string(e.session) == d.root {
		ev.SessionID = ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := range d.subs {
		if (s.all || s.session == string(ev.SessionID)) && slices.Contains(s.methods, ev.Method) {
			s.push(ev)
		}
	}
}

// finish ends the subscriptions of a session, "" for all of the driver's, when
// their readers have had what came before.
func (d *Driver) finish(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = d.over || session == ""
	for s := range d.subs {
		if session == "" || !s.all && s.session == session {
			s.queue.finish()
		}
	}
}

// Silence ends the subscriptions of a session that stays attached, when their
// readers have had what came before.
func (d *Driver) Silence(session target.SessionID) { d.finish(string(session)) }

// stop ends all subscriptions at once.
func (d *Driver) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	for s := range d.subs {
		s.queue.stop()
		delete(d.subs, s)
	}
}

// queue moves values to a channel without ever making the sender wait.
type queue[T any] struct {
	out  chan T
	wake chan struct{}
	done chan struct{}
	once sync.Once

	mu       sync.Mutex
	waiting  []T
	finished bool
}

func newQueue[T any]() *queue[T] {
	return &queue[T]{out: make(chan T), wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (q *queue[T]) push(v T) {
	q.mu.Lock()
	q.waiting = append(q.waiting, v)
	q.mu.Unlock()
	q.signal()
}

func (q *queue[T]) finish() {
	q.mu.Lock()
	q.finished = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue[T]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue[T]) stop() { q.once.Do(func() { close(q.done) }) }

func (q *queue[T]) pump() {
	defer close(q.out)
	for {
		q.mu.Lock()
		batch, finished := q.waiting, q.finished
		q.waiting = nil
		q.mu.Unlock()
		for _, v := range batch {
			select {
			case q.out <- v:
			case <-q.done:
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		if finished {
			return
		}
		select {
		case <-q.wake:
		case <-q.done:
			return
		}
	}
}
