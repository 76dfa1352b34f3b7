package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// wire is a CDP client without a library. It can send messages that no library sends.
type wire struct {
	t  testing.TB
	ws *websocket.Conn

	mu        sync.Mutex
	id        int64
	waiting   map[int64]chan reply
	events    []event
	eventCame chan struct{} // one token after each event
	closed    chan struct{}
	status    websocket.StatusCode // how the connection was closed, once closed
	keep      bool                 // whether messages are added to raw
	raw       [][]byte             // all messages while keep is true
}

// keepRaw makes the client store every message from now on.
func (w *wire) keepRaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep = true
}

// rawContains reports whether any stored message contains a text.
func (w *wire) rawContains(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.raw, func(m []byte) bool { return bytes.Contains(m, []byte(text)) })
}

// reply is the answer to a CDP command.
type reply struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// event is a CDP event.
type event struct {
	Method    string
	SessionID string `json:"sessionId"`
	Params    json.RawMessage
}

// dial connects to a cdp_url until the test ends.
func dial(t testing.TB, url string) *wire {
	t.Helper()
	return dialWith(t, url, nil)
}

// dialWith is dial with more HTTP headers.
func dialWith(t testing.TB, url string, header http.Header) *wire {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: header}) //nolint:bodyclose // an upgrade's answer has none
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	return newWire(t, ws)
}

// newWire makes a client of a connection, which it closes when the test ends.
func newWire(t testing.TB, ws *websocket.Conn) *wire {
	ws.SetReadLimit(256 << 20)
	w := &wire{t: t, ws: ws, waiting: map[int64]chan reply{}, eventCame: make(chan struct{}, 1), closed: make(chan struct{})}
	go w.read()
	t.Cleanup(w.close)
	return w
}

func (w *wire) close() {
	_ = w.ws.CloseNow() // it may be closed already
	<-w.closed
}

func (w *wire) read() {
	defer close(w.closed)
	for {
		_, raw, err := w.ws.Read(context.Background())
		if err != nil {
			w.mu.Lock()
			w.status = websocket.CloseStatus(err)
			w.mu.Unlock()
			return
		}
		var m struct {
			ID int64
			event
			reply
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		w.mu.Lock()
		if w.keep {
			w.raw = append(w.raw, raw)
		}
		if m.Method != "" {
			w.events = append(w.events, m.event)
			select {
			case w.eventCame <- struct{}{}:
			default:
			}
		} else if got := w.waiting[m.ID]; got != nil {
			got <- m.reply
		}
		w.mu.Unlock()
	}
}

// post sends a command and returns a channel for its answer.
func (w *wire) post(session, method string, params any) <-chan reply {
	w.t.Helper()
	got := make(chan reply, 1)
	w.mu.Lock()
	w.id++
	id := w.id
	w.waiting[id] = got
	w.mu.Unlock()
	m := obj{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if session != "" {
		m["sessionId"] = session
	}
	raw, err := json.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.send(raw)
	return got
}

func (w *wire) send(raw []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = w.ws.Write(ctx, websocket.MessageText, raw) // a closed connection shows when the answer is awaited
}

// try sends a command and returns its answer.
func (w *wire) try(session, method string, params any) reply {
	w.t.Helper()
	answer := w.post(session, method, params)
	select {
	case r := <-answer:
		return r
	case <-w.closed:
		if len(answer) > 0 { // it came before
			return <-answer
		}
		w.t.Fatalf("%s: the connection closed with %d", method, w.status)
	case <-time.After(grace):
		w.t.Fatalf("%s: no answer in time", method)
	}
	return reply{}
}

// leave sends a command that ends the connection, and returns when it is answered or the connection
// has ended.
func (w *wire) leave(method string) {
	w.t.Helper()
	select {
	case <-w.post("", method, nil):
	case <-w.closed:
	case <-time.After(grace):
		w.t.Fatalf("%s: no answer in time", method)
	}
}

// call is try for a command that must succeed. It decodes the result into v.
func (w *wire) call(session, method string, params, v any) {
	w.t.Helper()
	r := w.try(session, method, params)
	if r.Error != nil {
		w.t.Fatalf("%s %v: %+v", method, params, r.Error)
	}
	if v != nil {
		if err := json.Unmarshal(r.Result, v); err != nil {
			w.t.Fatalf("%s: %v\n%s", method, err, r.Result)
		}
	}
}

// refused is try for a command that Stasis must refuse.
func (w *wire) refused(session, method string, params any) {
	w.t.Helper()
	r := w.try(session, method, params)
	if r.Error == nil {
		w.t.Errorf("%s %v was not refused: %.300s", method, params, r.Result)
	} else if !strings.Contains(r.Error.Message, "Stasis") {
		w.t.Errorf("%s %v failed in Chrome and was not refused by Stasis: %+v", method, params, r.Error)
	}
}

// page attaches to the first page and returns its CDP session and target.
func (w *wire) page() (session, target string) {
	w.t.Helper()
	for _, info := range w.targets() {
		if info.Type == "page" {
			return w.attach(info.ID), info.ID
		}
	}
	w.t.Fatalf("the session has no page: %+v", w.targets())
	return "", ""
}

type targetInfo struct {
	ID   string `json:"targetId"`
	Type string
	URL  string
}

func (w *wire) targets() []targetInfo {
	w.t.Helper()
	var got struct{ TargetInfos []targetInfo }
	w.call("", "Target.getTargets", obj{"filter": []obj{{}}}, &got)
	return got.TargetInfos
}

func (w *wire) attach(target string) string {
	w.t.Helper()
	var got struct {
		SessionID string `json:"sessionId"`
	}
	w.call("", "Target.attachToTarget", obj{"targetId": target, "flatten": true}, &got)
	return got.SessionID
}

// open navigates a page to an address and waits until it has loaded.
func (w *wire) open(session, url string) {
	w.t.Helper()
	w.call(session, "Page.enable", nil, nil)
	w.forget()
	var got struct{ ErrorText, LoaderID string }
	w.call(session, "Page.navigate", obj{"url": url}, &got)
	if got.ErrorText != "" {
		w.t.Fatalf("%s: %s", url, got.ErrorText)
	}
	w.awaitLoad(session, got.LoaderID)
}

// reload reloads a page and waits until it has loaded.
func (w *wire) reload(session string) {
	w.t.Helper()
	w.call(session, "Page.enable", nil, nil)
	w.forget()
	w.call(session, "Page.reload", nil, nil)
	var started struct{ LoaderID string }
	if err := json.Unmarshal(w.await(session, "Page.frameStartedNavigating"), &started); err != nil {
		w.t.Fatal(err)
	}
	w.awaitLoad(session, started.LoaderID)
}

// awaitLoad waits for the load event that follows a loader's commit. One before it is of the
// page that was there.
func (w *wire) awaitLoad(session, loader string) {
	w.t.Helper()
	w.awaitUntil("load event after the commit of "+loader, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		loads := func(e event) bool { return e.SessionID == session && e.Method == "Page.loadEventFired" }
		commit := slices.IndexFunc(w.events, func(e event) bool {
			var to struct{ Frame struct{ LoaderID string } }
			return e.SessionID == session && e.Method == "Page.frameNavigated" && json.Unmarshal(e.Params, &to) == nil && to.Frame.LoaderID == loader
		})
		if commit < 0 || !slices.ContainsFunc(w.events[commit:], loads) {
			return false
		}
		w.events = slices.DeleteFunc(w.events, loads)
		return true
	})
}

// eval runs a script in a page, awaits it and returns its value as text.
func (w *wire) eval(session, script string) string {
	w.t.Helper()
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	w.call(session, "Runtime.evaluate", obj{"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &got)
	if got.ExceptionDetails != nil {
		return "exception: " + got.ExceptionDetails.Exception.Description
	}
	return fmt.Sprint(got.Result.Value)
}

// forget drops the events received so far.
func (w *wire) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = nil
}

// await waits for an event of a CDP session, or of any if session is empty.
func (w *wire) await(session, method string) json.RawMessage {
	w.t.Helper()
	var e event
	w.awaitUntil("event "+method, func() (ok bool) {
		e, ok = w.find(session, method)
		return ok
	})
	return e.Params
}

// awaitUntil waits until a condition is true, which it checks after each event.
func (w *wire) awaitUntil(what string, is func() bool) {
	w.t.Helper()
	for deadline := time.After(grace); !is(); {
		select {
		case <-w.eventCame:
		case <-w.closed:
			w.t.Fatalf("waiting for %s: the connection closed with %d", what, w.status)
		case <-deadline:
			w.t.Fatalf("no %s in time", what)
		}
	}
}

func (w *wire) find(session, method string) (event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, e := range w.events {
		if e.Method == method && (session == "" || e.SessionID == session) {
			w.events = append(w.events[:i:i], w.events[i+1:]...)
			return e, true
		}
	}
	return event{}, false
}

// ended waits until the daemon has closed the connection and returns the close code.
func (w *wire) ended() int {
	w.t.Helper()
	select {
	case <-w.closed:
		return int(w.status)
	case <-time.After(grace):
		w.t.Fatal("the connection was not closed")
	}
	return 0
}

// refusedUpgrade returns the status with which a WebSocket upgrade is refused.
func refusedUpgrade(t testing.TB, url string, header http.Header) (status int) {
	t.Helper()
	ws, res, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: header})
	if err == nil {
		_ = ws.CloseNow() // it should not be open
		t.Errorf("%s was opened", url)
	}
	if res == nil {
		t.Fatalf("no answer: %v", err)
	}
	if res.Body != nil {
		_ = res.Body.Close() // of no interest
	}
	return res.StatusCode
}
