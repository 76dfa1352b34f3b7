package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/client"
)

// maxBridged is the largest message that the bridge passes on, in bytes. The daemon's own
// limits are lower.
const maxBridged = 1 << 30

// cdpDeadline bounds one command that the port itself sends, such as Target.createTarget.
const cdpDeadline = 30 * time.Second

// bridge upgrades a request and connects it to a socket of the daemon, message by message.
func (p *devToolsPort) bridge(w http.ResponseWriter, r *http.Request, path string) {
	p.sockets.Add(1)
	defer p.sockets.Done()
	theirs, err := p.dial(p.closing, path)
	if err != nil {
		failed(w, err)
		return
	}
	defer func() { _ = theirs.CloseNow() }() // copyMessages has closed it, or it is given up
	ours, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // foreign has checked the Origin
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = ours.CloseNow() }() // as above
	ours.SetReadLimit(maxBridged)
	ctx, cancel := context.WithCancel(p.closing)
	defer cancel()
	back := make(chan struct{})
	go func() {
		defer close(back)
		copyMessages(ctx, ours, theirs)
		cancel()
	}()
	copyMessages(ctx, theirs, ours)
	cancel()
	<-back
}

// copyMessages passes messages on until one side closes. It then closes the other with the
// same code.
func copyMessages(ctx context.Context, to, from *websocket.Conn) {
	for {
		kind, message, err := from.Read(ctx)
		if err != nil {
			code, reason := websocket.StatusNormalClosure, ""
			var closed websocket.CloseError
			switch {
			case errors.As(err, &closed) && closed.Code != websocket.StatusNoStatusRcvd && closed.Code != websocket.StatusAbnormalClosure:
				code, reason = closed.Code, closed.Reason
			case ctx.Err() != nil:
				code = websocket.StatusGoingAway
			}
			_ = to.Close(code, reason) // it may have closed too
			return
		}
		if to.Write(ctx, kind, message) != nil {
			return
		}
	}
}

// dial connects to a socket of the daemon. The key goes in a header.
func (p *devToolsPort) dial(ctx context.Context, path string) (*websocket.Conn, error) {
	address := strings.Replace(strings.TrimSuffix(p.daemon.URL, "/"), "http", "ws", 1) + path
	conn, res, err := websocket.Dial(ctx, address, &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		HTTPClient:      p.daemon.http(),
		HTTPHeader:      http.Header{"Authorization": {"Bearer " + p.daemon.Key}},
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		if res == nil {
			return nil, noAnswer(exitFailed, err)
		}
		return nil, p.daemon.explain(client.Refusal(res))
	}
	conn.SetReadLimit(maxBridged)
	return conn, nil
}

// cdpRefusal is the error that the session's browser answers to a command.
type cdpRefusal struct {
	Message string `json:"message"`
}

func (r cdpRefusal) Error() string { return r.Message }

// command sends one command to the session's browser.
func (p *devToolsPort) command(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, cdpDeadline)
	defer cancel()
	conn, err := p.dial(ctx, p.path("cdp"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(websocket.StatusNormalClosure, "") }() // the answer is there
	request, err := json.Marshal(map[string]any{"id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if err := conn.Write(ctx, websocket.MessageText, request); err != nil {
		return nil, err
	}
	for {
		_, message, err := conn.Read(ctx)
		if err != nil {
			return nil, err
		}
		var answer struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *cdpRefusal     `json:"error"`
		}
		switch err := json.Unmarshal(message, &answer); {
		case err != nil:
			return nil, err
		case answer.Error != nil:
			return nil, *answer.Error
		case answer.ID == 1:
			return answer.Result, nil
		}
	}
}
