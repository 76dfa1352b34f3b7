package mux

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/budget"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// WebSocket close codes that [Mux.Serve] gives to [Conn.Close].
const (
	CloseNormal       = 1000 // the client left or asked for Browser.close; its page target is gone
	CloseGoingAway    = 1001 // the context of Serve ended
	CloseBrowserGone  = 1011 // Chrome, or its pipe, is gone
	CloseTooSlow      = 1013 // the client did not read what Chrome sent it
	CloseSessionEnded = 4001 // for CloseClients and who comes after it: the session was ended
	CloseKeyDeleted   = 4003 // the API key that the client came with was deleted
)

// Options say how a Mux behaves. The zero value is usable.
type Options struct {
	// Policy holds what the policy table needs to know of the session.
	Policy Policy
	// QueueBytes bounds what waits for a client that reads slowly; a client
	// over it is closed with CloseTooSlow. It bounds what waits for a subscription
	// of a [Driver] too. One message alone may be larger. 0 means 128 MiB.
	QueueBytes int
	// UnsentBytes bounds what waits for Chrome from one client; over it no
	// more is read from that client. 0 means 16 MiB.
	UnsentBytes int
	// Budget is the daemon's, which all its Muxes share; nil: one of its own.
	Budget *budget.Budget
	// KeepPage keeps one page of the session's own profile open: Chrome exits,
	// or at least unloads the profile with its session cookies, when the last
	// one closes. A client's closing of the last page first opens about:blank.
	KeepPage bool
	// HidesNone: this Chrome hides no target by itself (Target.createTarget
	// hidden), as the headless shell does not.
	HidesNone bool
}

// Mux shares one Chrome pipe among many peers: clients and drivers.
type Mux struct {
	opts Options
	pipe io.ReadWriteCloser
	out  *outbox
	own  *lane // the mux's own messages, on the pipe's root session

	done   chan struct{} // closed when the pipe has ended
	wg     sync.WaitGroup
	serves sync.WaitGroup // guarded by mu against Add after closing
	change chan struct{}
	asked  atomic.Uint64 // how many messages clients have sent

	extensions atomic.Pointer[ownExtensions] // nil until SetExtensions

	listening listening // written under the lock, that what is told at first is told first

	mu       sync.Mutex
	closing  bool
	err      error // why done is closed
	lastID   int64
	pending  map[int64]*pending
	sessions map[string]*session
	targets  targets
	clients  map[*client]struct{}
	entrance entrance
	users    map[*Driver]struct{}
	granted  []state.Granted
	opened   Opened          // nil unless OnCreate was called
	resumed  Resumed         // nil unless OnResume was called
	detached func()          // nil unless OnDetach was called
	turned   func(target.ID) // nil unless OnForeign was called
	dropping Dropping        // nil unless OnDrop was called
}

// pending is a request that Chrome has not answered. Exactly one of answer and
// lost is called, from the pipe's reader and without the lock, unless the peer
// leaves first.
type pending struct {
	peer    *peer
	session string
	method  string
	params  []byte // of a command that sets permissions or attaches
	answer  func(envelope)
	lost    func() // the session or the pipe went away; may be nil
}

// New takes over the pipe of a running Chrome, which may be [Prompt]. Close must
// be called.
func New(pipe io.ReadWriteCloser, opts Options) *Mux {
	if opts.QueueBytes == 0 {
		opts.QueueBytes = 128 << 20
	}
	if opts.UnsentBytes == 0 {
		opts.UnsentBytes = 16 << 20
	}
	if opts.Budget == nil {
		opts.Budget = budget.New(0)
	}
	m := &Mux{
		opts: opts, pipe: pipe, out: newOutbox(pipe),
		done: make(chan struct{}), change: make(chan struct{}, 1),
		pending: map[int64]*pending{}, sessions: map[string]*session{},
		clients: map[*client]struct{}{}, users: map[*Driver]struct{}{},
	}
	m.targets = newTargets(m.foreign)
	m.own = m.out.lane(0)
	m.wg.Add(2)
	go m.readPipe()
	go m.writePipe()
	// The pipe's root session belongs to the mux: it watches every target, of
	// every type, so that the policy knows what a session is attached to.
	m.command("", "Target.setDiscoverTargets", `{"discover":true,"filter":[{}]}`, func(envelope) {}, nil)
	return m
}

// Done is closed when the pipe has ended: Chrome is gone or Close was called.
func (m *Mux) Done() <-chan struct{} { return m.done }

// Err is why Done is closed: a fault with code browser_failed, nil before.
func (m *Mux) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Close closes the pipe, which makes Chrome exit, ends every client with
// CloseBrowserGone and waits for all goroutines. It is idempotent; its error
// is that of closing the pipe.
func (m *Mux) Close() error {
	m.mu.Lock()
	m.closing = true
	m.mu.Unlock()
	err := m.fail(errors.New("closed by the daemon"))
	m.wg.Wait()
	m.serves.Wait()
	m.mu.Lock()
	users := m.users
	m.users = map[*Driver]struct{}{}
	m.mu.Unlock()
	for d := range users {
		d.stop()
		d.pumps.Wait()
	}
	return err
}

// fail ends the pipe once: everyone who waits for it is told.
func (m *Mux) fail(cause error) error {
	m.mu.Lock()
	if m.err != nil {
		m.mu.Unlock()
		return nil
	}
	m.err = fault.Wrap(cause, fault.BrowserFailed, "mux.pipe", "the browser is gone")
	lost := m.pending
	m.pending = map[int64]*pending{}
	drivers := make([]*Driver, 0, len(m.users))
	for d := range m.users {
		drivers = append(drivers, d)
	}
	m.mu.Unlock()

	close(m.done)
	m.out.close()
	err := m.pipe.Close()
	for _, p := range lost {
		if p.lost != nil {
			p.lost()
		}
	}
	for _, d := range drivers {
		d.finish("")
	}
	return err
}

func (m *Mux) readPipe() {
	defer m.wg.Done()
	in := frames{r: m.pipe, limit: maxFrame, open: func(evict func()) *budget.Account { return m.opts.Budget.Open(m, evict) }}
	defer in.close()
	for {
		msg, whole, err := in.next()
		switch {
		case err != nil:
			_ = m.fail(err) // of closing a pipe that has already ended
			return
		case whole:
			m.route(msg)
		default:
			m.routeHead(msg)
		}
	}
}

func (m *Mux) writePipe() {
	defer m.wg.Done()
	if err := m.out.run(); err != nil {
		_ = m.fail(err) // of closing a pipe that has already ended
	}
}

// register remembers a request and gives it the id that Chrome will see: CDP
// ids are 31 bits wide.
func (m *Mux) register(p *pending) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return 0, m.err
	}
	for {
		m.lastID = m.lastID%(1<<31-1) + 1
		if _, taken := m.pending[m.lastID]; !taken {
			m.pending[m.lastID] = p
			return m.lastID, nil
		}
	}
}

// forget drops a request whose answer nobody waits for any more.
func (m *Mux) forget(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pending, id)
}

// route hands one message of Chrome to whom it is for. Only the reader calls
// it, so that everyone sees Chrome's order; nothing in it waits for a peer.
func (m *Mux) route(msg []byte) {
	e, err := scan(msg)
	if err != nil {
		return // not CDP; Chrome does not send such
	}
	if e.id == nil {
		m.routeEvent(msg, e)
		return
	}
	p := m.answered(e.id)
	if p == nil {
		return // its peer has left
	}
	m.learn(p, &e)
	p.answer(e)
	m.tellDetached(p.method)
}

// answered takes the request that has the ID off those that wait; nil where there
// is none.
func (m *Mux) answered(id []byte) *pending {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pending[n]
	delete(m.pending, n)
	return p
}

// routeHead takes the beginning of a message that was too large to be kept: who
// asked gets an error, an event is dropped. Chrome begins an answer with its ID
// (Chrome 156, content/browser/devtools).
func (m *Mux) routeHead(head []byte) {
	rest, ok := bytes.CutPrefix(head, []byte(`{"id":`))
	if !ok {
		return
	}
	id, _, _ := bytes.Cut(rest, []byte(","))
	if p := m.answered(id); p != nil {
		p.answer(envelope{id: id, err: tooLargeAnswer})
	}
}

var tooLargeAnswer = fmt.Appendf(nil, `{"code":%d,"message":"The answer is larger than %d bytes, or than what the daemon has room for"}`, codeRefused, maxFrame)
