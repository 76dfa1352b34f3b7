package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Conn is a plain CDP connection to a browser, without a client library.
type Conn struct {
	ws   *websocket.Conn
	done chan struct{} // closed when the reading goroutine has ended

	mu      sync.Mutex
	id      int64
	waiting map[int64]chan answer
	ended   error
}

// answer is CDP's response to one command.
type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// callDeadline bounds one command, far longer than any takes.
const callDeadline = 60 * time.Second

// maxMessage bounds one message, in bytes.
const maxMessage = 64 << 20

// Dial connects to a browser's WebSocket address.
func Dial(ctx context.Context, url string) (*Conn, error) {
	ws, _, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // an upgrade's answer has none
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(maxMessage)
	c := &Conn{ws: ws, done: make(chan struct{}), waiting: map[int64]chan answer{}}
	go c.read()
	return c, nil
}

// Close closes the connection and keeps the browser running.
func (c *Conn) Close() {
	_ = c.ws.CloseNow() // it may be closed already
	<-c.done
}

// CloseCode waits until the connection is closed, and returns the code of its close frame; -1:
// there was none, or ctx has ended first.
func (c *Conn) CloseCode(ctx context.Context) int {
	select {
	case <-c.done:
	case <-ctx.Done():
		return -1
	}
	return int(websocket.CloseStatus(c.ended))
}

func (c *Conn) read() {
	defer close(c.done)
	for {
		_, raw, err := c.ws.Read(context.Background()) // Close ends the read
		if err != nil {
			c.mu.Lock()
			c.ended = errors.Join(errors.New("the CDP connection to the browser is closed"), err)
			c.mu.Unlock()
			return
		}
		var m struct {
			ID int64
			answer
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		c.mu.Lock()
		if to := c.waiting[m.ID]; to != nil {
			delete(c.waiting, m.ID)
			to <- m.answer
		}
		c.mu.Unlock()
	}
}

// Call sends a command to the browser, or to one of its CDP sessions, and decodes the
// result into out; nil ignores it.
func (c *Conn) Call(ctx context.Context, session, method string, params, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	to := make(chan answer, 1)
	c.mu.Lock()
	c.id++
	id := c.id
	c.waiting[id] = to
	c.mu.Unlock()
	raw, err := json.Marshal(struct {
		ID      int64  `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
		Session string `json:"sessionId,omitempty"`
	}{id, method, params, session})
	if err != nil {
		return err
	}
	// The library closes the connection if the context of a write is cancelled.
	if err := c.ws.Write(context.WithoutCancel(ctx), websocket.MessageText, raw); err != nil {
		return err
	}
	decode := func(a answer) error {
		if a.Error != nil {
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		if out == nil {
			return nil
		}
		return json.Unmarshal(a.Result, out)
	}
	select {
	case a := <-to:
		return decode(a)
	case <-c.done:
		select {
		case a := <-to: // it came before the end
			return decode(a)
		default:
			return c.ended
		}
	case <-ctx.Done():
		return fmt.Errorf("%s: no answer from the browser in time", method)
	}
}
