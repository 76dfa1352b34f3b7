package mux

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/stasisd/stasis/budget"
	"github.com/stasisd/stasis/fault"
)

// WebSocket close codes that [Mux.Serve] gives to [Conn.Close].
const (
	CloseNormal       = 1000 // the client disconnected or sent Browser.close, or its page target was closed
	CloseGoingAway    = 1001 // the context of Serve ended
	CloseRestarting   = 1012 // for [Clients.Close], and for later clients: the session continues elsewhere at the same URL
	CloseBrowserGone  = 1011 // Chrome, or its pipe, has ended
	CloseTooSlow      = 1013 // the client did not read fast enough
	CloseSessionEnded = 4001 // for [Clients.Close], and for later clients: the session was ended
	CloseKeyDeleted   = 4003 // the API key of the client was deleted
	CloseLinkEnded    = 4004 // the shared link of a viewer has expired or was revoked
)

// Options configures a Mux. The zero value is usable.
type Options struct {
	// Policy holds what the policy table needs to know about the session.
	Policy Policy
	// Downloads gives complete downloads their names; nil: they stay as Chrome wrote them.
	Downloads DownloadFolder
	// MaxDownloads bounds the bytes of all downloads in that folder, complete and running.
	// Above it the mux cancels running ones. 0 means no limit.
	MaxDownloads int64
	// QueueBytes bounds the bytes that wait for a slow client. A client that exceeds it is
	// closed with CloseTooSlow. It also bounds what waits for a subscription of a [Driver].
	// One message alone may be larger. 0 means 128 MiB.
	QueueBytes int
	// UnsentBytes bounds the bytes from one client that wait for Chrome. Above it the mux
	// stops reading from that client. 0 means 16 MiB.
	UnsentBytes int
	// Budget is the memory budget that all Muxes of the daemon share; nil: a budget of this
	// Mux alone.
	Budget *budget.Budget
	// KeepPage keeps one page of the session's own profile open. When the last page closes,
	// Chrome exits, or at least unloads the profile with its session cookies. Before a
	// client closes the last page, the mux opens about:blank.
	KeepPage bool
	// NoHiddenTargets: this Chrome does not support hidden targets (Target.createTarget with
	// hidden). The headless shell does not.
	NoHiddenTargets bool
}

// Mux shares one Chrome pipe among many peers: clients and drivers.
type Mux struct {
	Clients     *Clients
	Addresses   *Addresses
	Permissions *Permissions
	Hooks       *Hooks

	opts Options
	pipe io.ReadWriteCloser
	out  *outbox
	own  *lane // the mux's own messages, on the pipe's root session

	done chan struct{} // closed when the pipe has ended
	wg   sync.WaitGroup

	requests *requests
	running  running

	listening listening // written under the lock, so that a new listener gets the existing pages first

	mu       sync.Mutex
	closing  bool
	sessions sessions
	targets  targets
	users    map[*Driver]struct{}
	waiters  []pausedWaiter
	shared   *sharedContexts
}

// New takes over the pipe of a running Chrome. The pipe may also implement [NonblockingWriter]. The
// caller must call Close.
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
		Addresses: new(Addresses), Hooks: new(Hooks),
		opts: opts, pipe: pipe, out: newOutbox(pipe),
		done: make(chan struct{}), requests: &requests{pending: map[int64]*pending{}}, users: map[*Driver]struct{}{},
	}
	m.Permissions = newPermissions(m.Hooks.regrant)
	m.Clients = newClients(m.ended, m.done)
	m.sessions = sessions{all: map[string]*session{}, requests: m.requests}
	m.targets = newTargets(m.Addresses.foreign)
	m.shared = newSharedContexts(m)
	m.own = m.out.lane(0)
	m.wg.Add(2)
	go m.readPipe()
	go m.writePipe()
	// The mux owns the pipe's root session and discovers every target of every type there,
	// so that the policy knows what a session is attached to.
	m.command("", "Target.setDiscoverTargets", `{"discover":true,"filter":[{}]}`, func(envelope) {}, nil)
	return m
}

// Done is closed when the pipe has ended: Chrome has exited or Close was called.
func (m *Mux) Done() <-chan struct{} { return m.done }

// Err returns why Done is closed: a fault with code browser_failed. It returns nil before
// that.
func (m *Mux) Err() error { return m.requests.failure() }

// ended reports whether the browser is ending or has ended, and with which error.
func (m *Mux) ended() (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.Err()
	return err != nil || m.closing, err
}

// Close closes the pipe, which makes Chrome exit. It closes every client with
// CloseBrowserGone and waits for all goroutines. It is idempotent. Its error is that of
// closing the pipe.
func (m *Mux) Close() error {
	m.mu.Lock()
	m.closing = true
	m.mu.Unlock()
	err := m.fail(errors.New("closed by the daemon"))
	m.wg.Wait()
	m.Clients.wait()
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

// fail ends the pipe once and notifies every peer that waits for it.
func (m *Mux) fail(cause error) error {
	lost, first := m.requests.end(fault.Wrap(cause, fault.BrowserFailed, "mux.pipe", "the browser has ended"))
	if !first {
		return nil
	}
	m.mu.Lock()
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
			_ = m.fail(err) // the error of closing a pipe that has already ended
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
		_ = m.fail(err) // the error of closing a pipe that has already ended
	}
}

// route passes one message of Chrome to its receiver. Only the reader calls it, so that
// every peer sees Chrome's order. Nothing in it waits for a peer.
func (m *Mux) route(msg []byte) {
	e, err := scan(msg)
	if err != nil {
		return // not CDP; Chrome sends no such message
	}
	if e.id == nil {
		m.routeEvent(msg, e)
		return
	}
	p := m.requests.answered(e.id)
	if p == nil {
		return // its peer has disconnected
	}
	m.learn(p, &e)
	m.shared.answer(p, msg, e)
	m.Hooks.commandDone(p.method)
}

// routeHead processes the beginning of a message that was too large. A pending request
// gets an error; an event is dropped. Chrome begins an answer with its ID (Chrome 156,
// content/browser/devtools).
func (m *Mux) routeHead(head []byte) {
	rest, ok := bytes.CutPrefix(head, []byte(`{"id":`))
	if !ok {
		return
	}
	id, _, _ := bytes.Cut(rest, []byte(","))
	if p := m.requests.answered(id); p != nil {
		p.answer(envelope{id: id, err: tooLargeAnswer})
	}
}

var tooLargeAnswer = fmt.Appendf(nil, `{"code":%d,"message":"The answer is larger than %d bytes, or than the daemon's free memory budget"}`, codeRefused, maxFrame)
