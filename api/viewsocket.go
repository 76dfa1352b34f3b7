package api

import (
	"context"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/session"
)

const (
	// maxViewMessage bounds a message of a viewer, in bytes: a paste of 1 MiB, with escapes.
	maxViewMessage = 8 << 20
	// viewChunk is how many bytes of a message to a viewer are written at once. Writes of at
	// most smallWrite do not block.
	viewChunk = smallWrite / 2
)

// view is serve for a viewer of the live view.
func (k *cdpSockets) view(c *call, id string) error {
	release, err := k.cdp.AttachViewer(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	defer release()
	return k.upgrade(c, maxViewMessage, func(conn *socket) error {
		viewer := &viewSocket{socket: conn, pace: pace{now: k.now, most: k.patience}}
		return k.cdp.View(c.Request().Context(), c.caller, id, viewer)
	})
}

// viewSocket implements session.ViewConn on a WebSocket. It closes a viewer that reads more
// slowly than the [pace], over all its messages.
type viewSocket struct {
	*socket
	pace pace
}

var _ session.ViewConn = (*viewSocket)(nil)

// Write sends a text message.
func (v *viewSocket) Write(ctx context.Context, text []byte) error {
	return v.write(ctx, websocket.MessageText, text)
}

// WriteBinary sends a binary message.
func (v *viewSocket) WriteBinary(ctx context.Context, data []byte) error {
	return v.write(ctx, websocket.MessageBinary, data)
}

func (v *viewSocket) write(ctx context.Context, kind websocket.MessageType, msg []byte) error {
	ctx, stop := v.graceContext(ctx)
	defer stop()
	to, err := v.ws.Writer(ctx, kind)
	if err != nil {
		return err
	}
	for len(msg) > 0 {
		chunk := msg[:min(viewChunk, len(msg))]
		msg = msg[len(chunk):]
		if err := v.paced(len(chunk), func() error {
			if _, err := to.Write(chunk); err != nil {
				return err
			}
			return v.conn.waitIdle(ctx)
		}); err != nil {
			return err
		}
	}
	return to.Close()
}

// paced calls write, which writes n bytes, and closes the viewer if that takes too long.
func (v *viewSocket) paced(n int, write func() error) error {
	late := time.AfterFunc(v.pace.most-v.pace.spent, func() {
		v.start(websocket.StatusTryAgainLater, "too slow: the viewer does not read")
	})
	defer late.Stop()
	since := v.pace.now()
	err := write()
	v.pace.moved(since, n)
	return err
}
