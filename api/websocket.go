package api

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
)

const (
	// maxReason is what a close frame has room for (RFC 6455, 5.5).
	maxReason = 123
	// closePatience is how long a client may take to answer a close frame
	// before its connection is cut off.
	closePatience = time.Second
	// closeTime is how long a closing handshake may take at most. The library
	// waits for ever for the rest of a frame whose header came (coder/websocket
	// 1.8.15, waitCloseHandshake).
	closeTime = 5 * time.Second
	// firstRead is the memory that a message is read into at first, in bytes.
	firstRead = 4 << 10
)

// checkUpgrade refuses what is no WebSocket request, and one of a foreign web
// page. A request without Origin comes from no browser.
func (o origins) checkUpgrade(c *call) error {
	r := c.Request()
	if !o.sameOrigin(r) {
		return fault.New(fault.Forbidden, "api.websocket", "the Origin is foreign")
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return fault.New(fault.InvalidRequest, "api.websocket", "this is a WebSocket: an upgrade is needed")
	}
	return nil
}

// cdpSockets serves CDP on WebSockets.
type cdpSockets struct {
	cdp        CDP
	maxMessage int64 // bytes
	now        func() time.Time
	patience   time.Duration   // for a message that has begun to arrive
	closing    context.Context // sockets are closed when it ends
}

// serve upgrades the request and serves CDP on it until the client leaves,
// the session ends or the daemon stops. Errors from before the upgrade are
// returned; later ones close the socket.
func (k *cdpSockets) serve(c *call, id, targetID string) error {
	release, err := k.cdp.Attach(id)
	if err != nil {
		return err
	}
	defer release()
	taken := &hijack{ResponseWriter: c.Response()}
	ws, err := websocket.Accept(taken, c.Request(), &websocket.AcceptOptions{
		InsecureSkipVerify: true, // checkUpgrade looked at the Origin
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "api.websocket", "the WebSocket upgrade is malformed")
	}
	ws.SetReadLimit(k.maxMessage)
	conn := &socket{ws: ws, conn: taken.conn, now: k.now, patience: k.patience}
	defer conn.wait()
	defer ws.CloseNow() //nolint:errcheck // ends what a close handshake has left
	stop := context.AfterFunc(k.closing, func() { conn.start(websocket.StatusGoingAway, "the daemon stops") })
	defer stop()

	err = k.cdp.Connect(c.Request().Context(), c.caller, id, targetID, conn)
	if err != nil && k.closing.Err() == nil {
		conn.start(websocket.StatusInternalError, string(fault.CodeOf(err)))
	} else {
		conn.start(websocket.StatusNormalClosure, "")
	}
	conn.wait()
	return err
}

// socket is a WebSocket as session.Conn.
type socket struct {
	ws   *websocket.Conn
	conn *prompt          // below ws
	take func(n int) bool // counts the memory of messages; nil: nobody does
	// now and patience are the [pace] of a message that has begun to arrive.
	now      func() time.Time
	patience time.Duration

	mu   sync.Mutex
	over chan struct{} // made when a closing handshake begins, closed when it is over
}

var (
	_ session.Conn  = (*socket)(nil)
	_ session.Eager = (*socket)(nil)

	_ session.Metered = (*socket)(nil)
)

func (k *socket) Read(ctx context.Context) ([]byte, error) {
	ctx, stop := k.lingering(ctx)
	defer stop()
	_, from, err := k.ws.Reader(ctx)
	if err != nil {
		return nil, err
	}
	return k.assemble(k.paced(from))
}

// paced reads a message that has begun. A client that does not go on with it is closed.
func (k *socket) paced(from io.Reader) io.Reader {
	return &pacedMessage{from: from, pace: pace{now: k.now, most: k.patience}, end: func() {
		k.start(websocket.StatusPolicyViolation, "a message came too slowly")
	}}
}

type pacedMessage struct {
	from io.Reader
	pace pace
	end  func()
}

func (m *pacedMessage) Read(p []byte) (int, error) {
	late := time.AfterFunc(m.pace.most-m.pace.spent, m.end)
	defer late.Stop()
	since := m.pace.now()
	n, err := m.from.Read(p)
	m.pace.moved(since, n)
	return n, err
}

// Meter implements [session.Metered].
func (k *socket) Meter(take func(n int) bool) { k.take = take }

// errNoRoom ends a client that gave way to others.
var errNoRoom = errors.New("the daemon has no room for the message")

// assemble reads a message whole. Its memory, the capacity of what it returns,
// is counted before it is there.
func (k *socket) assemble(from io.Reader) ([]byte, error) {
	msg := []byte{}
	for {
		if len(msg) == cap(msg) {
			most := max(firstRead, 2*cap(msg))
			if k.take != nil && !k.take(most-cap(msg)) {
				return nil, errNoRoom
			}
			msg = append(make([]byte, 0, most), msg...)
		}
		n, err := from.Read(msg[len(msg):cap(msg)])
		msg = msg[:len(msg)+n]
		switch {
		case errors.Is(err, io.EOF):
			return msg, nil
		case err != nil:
			return nil, err
		}
	}
}

func (k *socket) Write(ctx context.Context, msg []byte) error {
	ctx, stop := k.lingering(ctx)
	defer stop()
	if err := k.conn.settle(ctx); err != nil {
		return err
	}
	return k.ws.Write(ctx, websocket.MessageText, msg)
}

// Offer sends a message if that needs no waiting.
func (k *socket) Offer(msg []byte) bool {
	return len(msg) <= smallWrite && k.conn.settled() && k.ws.Write(context.Background(), websocket.MessageText, msg) == nil
}

// lingering is ctx, but while the socket is being closed it ends a little
// later: a read or write that is cancelled tears the connection down, and the
// frame that tells the client why it ends would be lost.
func (k *socket) lingering(ctx context.Context) (context.Context, func()) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		k.waitFor(closePatience)
		cancel()
	})
	return late, func() { stop(); cancel() }
}

// Close begins the closing handshake and does not wait for the peer; the
// handler does, for the few seconds that the handshake may take.
func (k *socket) Close(code int, reason string) error {
	k.start(websocket.StatusCode(code), reason)
	return nil
}

func (k *socket) start(code websocket.StatusCode, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over != nil {
		return
	}
	over := make(chan struct{})
	k.over = over
	go func() {
		defer close(over)
		cut := time.AfterFunc(closeTime, func() { _ = k.conn.Close() }) // Close below gives the error
		defer cut.Stop()
		// A peer that is gone cannot be told; nothing else is lost.
		_ = k.ws.Close(code, reason[:min(len(reason), maxReason)])
	}()
}

// wait returns when a closing handshake that was begun is over.
func (k *socket) wait() {
	if over := k.closing(); over != nil {
		<-over
	}
}

// waitFor is wait for at most so long.
func (k *socket) waitFor(most time.Duration) {
	if over := k.closing(); over != nil {
		select {
		case <-over:
		case <-time.After(most):
		}
	}
}

// closing is closed when the handshake is over; nil if none was begun.
func (k *socket) closing() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.over
}
