package mux

import (
	"errors"
	"slices"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
)

// Event is one event of a driver's session. SessionID is empty for the browser's own
// session.
type Event struct {
	SessionID target.SessionID
	Method    string
	Params    jsonv2.Value
}

// subscription receives some events of a driver.
type subscription struct {
	session string // its ID; of any session if all is set
	all     bool
	methods []string
	queue   interface {
		finish()
		stop()
	}
	push func(Event) bool
}

// Events returns the events with these methods from all the driver's sessions, in the
// order of arrival. The channel is closed by cancel, by Close of the driver or at the end
// of Chrome. If more than [Options].QueueBytes of events wait, the subscription ends and
// the waiting events are dropped. See also EndOnOverflow.
func (d *Driver) Events(methods ...string) (events <-chan Event, cancel func()) {
	q := newQueue[Event](d.m.opts.QueueBytes)
	push := func(e Event) bool { return q.push(e, e.size()) }
	return q.out, d.add(&subscription{all: true, methods: methods, queue: q, push: push}, q.pump)
}

// EndOnOverflow makes Chrome end if a subscription of the driver overflows. It is for
// callers that depend on every event.
func (d *Driver) EndOnOverflow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endOnOverflow = true
}

func (d *Driver) subscribe(session, method string) (<-chan jsonv2.Value, func()) {
	q := newQueue[jsonv2.Value](d.m.opts.QueueBytes)
	push := func(e Event) bool { return q.push(e.Params, e.size()) }
	s := &subscription{session: session, methods: []string{method}, queue: q, push: push}
	cancel := d.add(s, q.pump)
	if session != "" && d.m.lookup(&d.peer, []byte(session)) == nil {
		q.finish() // it is already detached
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

// publish passes an event of Chrome to the subscriptions. It never waits for a
// subscriber.
func (d *Driver) publish(_ []byte, e envelope) {
	ev := Event{SessionID: target.SessionID(e.session), Method: string(e.method), Params: jsonv2.Value(e.params)}
	if string(e.session) == d.root {
		ev.SessionID = ""
	}
	if d.deliver(ev) {
		_ = d.m.fail(errOverflow) // the error of closing the pipe, which is given up
	}
}

// errOverflow is why Chrome was ended after a subscription overflowed.
var errOverflow = errors.New("more events came from Chrome than the daemon could take")

// deliver passes an event to the subscriptions that want it. It ends a subscription that
// has no space for it, and reports whether Chrome must end for that.
func (d *Driver) deliver(ev Event) (end bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := range d.subs {
		if !s.all && s.session != string(ev.SessionID) || !slices.Contains(s.methods, ev.Method) || s.push(ev) {
			continue
		}
		s.queue.stop()
		delete(d.subs, s)
		end = end || d.endOnOverflow
	}
	return end
}

// finish ends the subscriptions of a session, or all of the driver's for "", after their
// readers have received the queued events.
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

// EndSubscriptions ends the subscriptions of a session that stays attached, after their
// readers have received the queued events.
func (d *Driver) EndSubscriptions(session target.SessionID) { d.finish(string(session)) }

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

// size is the number of bytes that an event takes in a queue.
func (e Event) size() int { return len(e.Params) + eventOverhead }

// eventOverhead is roughly what an event takes in addition to its parameters, in bytes.
const eventOverhead = 128
