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
	// maxReason is the maximum length of a reason in a close frame, in bytes (RFC 6455,
	// 5.5).
	maxReason = 123
	// closePatience is how long a client may take to answer a close frame
	// before its connection is cut off.
	closePatience = time.Second
	// closeTime limits a closing handshake. The library waits forever for the rest of a
	// frame whose header has arrived (coder/websocket 1.8.15, waitCloseHandshake).
	closeTime = 5 * time.Second
	// initialBuffer is the first size of the buffer for a message, in bytes.
	initialBuffer = 1 << 10
)

// checkUpgrade refuses a request that is not for a WebSocket, and one from a foreign web
// page. A request without Origin does not come from a browser.
func (o origins) checkUpgrade(c *call) error {
	r := c.Request()
	if !o.sameOrigin(r) {
		return fault.New(fault.Forbidden, "api.websocket", "Origin: must be this daemon's own host")
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return fault.New(fault.InvalidRequest, "api.websocket", "Upgrade: must be websocket")
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

// serve upgrades the request and serves CDP on it until the client disconnects, the session
// ends or the daemon stops. Errors from before the upgrade become the answer; later ones
// close the socket.
func (k *cdpSockets) serve(c *call, id string, client session.Client) error {
	release, err := k.cdp.Attach(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	defer release()
	return k.upgrade(c, k.maxMessage, func(conn *socket) error {
		return k.cdp.Connect(c.Request().Context(), c.caller, id, client, conn)
	})
}

// upgrade makes the request a WebSocket whose messages have at most maxMessage bytes, and
// calls use with it. It closes the socket with the error of use.
func (k *cdpSockets) upgrade(c *call, maxMessage int64, use func(*socket) error) error {
	taken := &hijackWriter{ResponseWriter: c.Response()}
	ws, err := websocket.Accept(taken, c.Request(), &websocket.AcceptOptions{
		InsecureSkipVerify: true, // checkUpgrade has checked the Origin
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "api.websocket", "the WebSocket upgrade is malformed")
	}
	c.audit.end(c, nil)
	ws.SetReadLimit(maxMessage)
	conn := &socket{ws: ws, conn: taken.conn, now: k.now, patience: k.patience}
	defer conn.wait()
	defer ws.CloseNow() //nolint:errcheck // closes what the closing handshake has left open
	stop := context.AfterFunc(k.closing, func() { conn.start(websocket.StatusGoingAway, "the daemon stops") })
	defer stop()

	err = use(conn)
	if err != nil && k.closing.Err() == nil {
		conn.start(websocket.StatusInternalError, string(fault.CodeOf(err)))
	} else {
		conn.start(websocket.StatusNormalClosure, "")
	}
	conn.wait()
	return err
}

// socket implements session.Conn on a WebSocket.
type socket struct {
	ws   *websocket.Conn
	conn *nonblockingConn // below ws
	take func(n int) bool // counts the memory of messages; nil: not counted
	// now and patience are the [pace] of a message that has begun to arrive.
	now      func() time.Time
	patience time.Duration

	mu     sync.Mutex
	closed chan struct{} // made when a closing handshake begins, closed when it has ended
}

var (
	_ session.Conn            = (*socket)(nil)
	_ session.NonblockingConn = (*socket)(nil)

	_ session.Metered = (*socket)(nil)
)

func (k *socket) Read(ctx context.Context) ([]byte, error) {
	ctx, stop := k.graceContext(ctx)
	defer stop()
	_, from, err := k.ws.Reader(ctx)
	if err != nil {
		return nil, err
	}
	k.conn.arriving.Store(&arrival{pace{now: k.now, most: k.patience}, k.tooSlow})
	defer k.conn.arriving.Store(nil)
	return k.assemble(from)
}

func (k *socket) tooSlow() {
	k.start(websocket.StatusPolicyViolation, "a message arrived too slowly")
}

// Meter implements [session.Metered].
func (k *socket) Meter(take func(n int) bool) { k.take = take }

// errNoMemory closes a client when the memory for messages is used up.
var errNoMemory = errors.New("the daemon has no memory for the message")

// assemble reads a whole message. It counts the memory, which is the capacity of the
// result, before it allocates it.
func (k *socket) assemble(from io.Reader) ([]byte, error) {
	msg := []byte{}
	for {
		if len(msg) == cap(msg) {
			most := max(initialBuffer, 2*cap(msg))
			if k.take != nil && !k.take(most-cap(msg)) {
				return nil, errNoMemory
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
	ctx, stop := k.graceContext(ctx)
	defer stop()
	if err := k.conn.waitIdle(ctx); err != nil {
		return err
	}
	return k.ws.Write(ctx, websocket.MessageText, msg)
}

// TryWrite sends a message if that does not block.
func (k *socket) TryWrite(msg []byte) bool {
	return len(msg) <= smallWrite && k.conn.idle() && k.ws.Write(context.Background(), websocket.MessageText, msg) == nil
}

// graceContext returns a context that ends with ctx, or a little later while the socket is
// being closed. Cancelling a read or write tears the connection down, and the frame that
// tells the client the reason would be lost.
func (k *socket) graceContext(ctx context.Context) (context.Context, func()) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		k.waitFor(closePatience)
		cancel()
	})
	return late, func() { stop(); cancel() }
}

// Close begins the closing handshake and does not wait for the peer. The handler waits, at
// most closeTime.
func (k *socket) Close(code int, reason string) error {
	k.start(websocket.StatusCode(code), reason)
	return nil
}

func (k *socket) start(code websocket.StatusCode, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed != nil {
		return
	}
	over := make(chan struct{})
	k.closed = over
	go func() {
		defer close(over)
		cut := time.AfterFunc(closeTime, func() { _ = k.conn.Close() }) // Close below returns the error
		defer cut.Stop()
		// A peer that has disconnected cannot receive the frame; nothing else is lost.
		_ = k.ws.Close(code, reason[:min(len(reason), maxReason)])
	}()
}

// wait returns when a closing handshake that has begun has ended.
func (k *socket) wait() {
	if over := k.closing(); over != nil {
		<-over
	}
}

// waitFor is wait with a limit.
func (k *socket) waitFor(most time.Duration) {
	if over := k.closing(); over != nil {
		select {
		case <-over:
		case <-time.After(most):
		}
	}
}

// closing returns a channel that is closed when the handshake has ended; nil if none has
// begun.
func (k *socket) closing() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}
