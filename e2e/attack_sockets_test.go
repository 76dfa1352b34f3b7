package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/e2e/daemon"
)

// socketMemory is the most memory of a daemon, in bytes, whatever its CDP clients
// send and do not read: twice the budget of 256 MiB and the 128 MiB of one message of
// Chrome's, for Go's collector runs when the heap has doubled, and what a daemon takes
// anyway. 592 MB were measured. Without the budget six clients that do not end a
// message take 1939 MB.
const socketMemory = 896 << 20

// TestHostileClients: CDP clients that send without an end, come without an end
// and do not read. None takes the daemon's memory, and a client of another session
// is served all along.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{Args: []string{"--max-clients", "8"}, Unraced: true})
	for _, engine := range []string{"chrome", "shell"} {
		t.Run(engine, func(t *testing.T) {
			s := create(t, d, body{"user_id": "ada", "engine": engine})
			other := dial(t, create(t, d, body{"user_id": "bob", "engine": engine}).CDP)
			page := pageOf(t, s.CDP)
			forgetPeak(t, d)
			tooLarge(t, s.CDP)
			unfinished(t, s.CDP)
			tooMany(t, s.CDP)
			unread(t, d, strings.Replace(s.CDP, "/cdp?", "/cdp/page/"+page+"?", 1))
			peak := peakMemory(t, d.PID())
			if peak > socketMemory {
				t.Errorf("the daemon took %d MB", peak>>20)
			}
			var got string
			other.evaluate("'x'.repeat(40 * 1024 * 1024)", &got)
			if len(got) != 40<<20 {
				t.Errorf("a client that reads got %d bytes", len(got))
			}
			t.Logf("the daemon took %d MB", peak>>20)
		})
	}
}

// evaluate runs a script in a page of the client's and takes its value.
func (w *wire) evaluate(script string, into any) {
	w.t.Helper()
	var made struct{ TargetID, SessionID string }
	w.call("", "Target.createTarget", obj{"url": "about:blank"}, &made)
	w.call("", "Target.attachToTarget", obj{"targetId": made.TargetID, "flatten": true}, &made)
	var out struct {
		Result struct{ Value json.RawMessage }
	}
	w.call(made.SessionID, "Runtime.evaluate", obj{"expression": script, "returnByValue": true}, &out)
	if err := json.Unmarshal(out.Result.Value, into); err != nil {
		w.t.Fatal(err)
	}
}

// raw connects a client that reads nothing by itself.
func raw(t testing.TB, url string) *websocket.Conn {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), url, nil) //nolint:bodyclose // an upgrade's answer has none
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() }) // it may be closed already
	return ws
}

// tooLarge: a message that is larger than allowed closes its client, with 1009 and
// a reason; one of 20 MB is served.
func tooLarge(t *testing.T, url string) {
	t.Helper()
	ws := dial(t, url)
	ws.call("", "Browser.getVersion", obj{"x": strings.Repeat("x", 20<<20)}, nil)
	if err := ws.ws.Write(t.Context(), websocket.MessageText, []byte(`{"id":1,"method":"`+strings.Repeat("x", 33<<20)+`"}`)); err != nil {
		t.Logf("cut off while it was sent: %v", err)
	}
	ws.ended()
	if ws.status != websocket.StatusMessageTooBig {
		t.Errorf("a message of 33 MB: closed with %d", ws.status)
	}
}

// unfinished: six clients that each send a message of a quarter of a gigabyte and
// do not end it.
func unfinished(t *testing.T, url string) {
	t.Helper()
	piece := []byte(strings.Repeat("x", 1<<20))
	for range 6 {
		ws := raw(t, url)
		w, err := ws.Writer(t.Context(), websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		for range 250 {
			if _, err = w.Write(piece); err != nil {
				break // it was closed, as it may be
			}
		}
	}
}

// tooMany: one client more than there may be is told so before the upgrade; when
// one has gone there is room again.
func tooMany(t *testing.T, url string) {
	t.Helper()
	var all []*websocket.Conn
	// connect adds a client, or gives the status, Retry-After and body of the refusal.
	connect := func() (status int, retry, text string) {
		ws, answer, err := websocket.Dial(t.Context(), url, nil)
		if err == nil {
			all = append(all, ws)
			return http.StatusSwitchingProtocols, "", ""
		}
		if answer == nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }() // only read from
		raw, _ := io.ReadAll(answer.Body)          // what is missing shows below
		return answer.StatusCode, answer.Header.Get("Retry-After"), string(raw)
	}
	defer func() {
		for _, ws := range all {
			_ = ws.CloseNow()
		}
	}()
	status, retry, text := connect()
	for status == http.StatusSwitchingProtocols && len(all) <= 8 {
		status, retry, text = connect()
	}
	if status != http.StatusTooManyRequests || retry == "" || !strings.Contains(text, "too_many_clients") {
		t.Errorf("one too many: %d %s", status, text)
	}
	_ = all[0].CloseNow()
	daemon.Eventually(t, time.Minute, "there is room for a client again", func() bool {
		status, _, _ := connect()
		return status == http.StatusSwitchingProtocols
	})
}

// evictions is how many clients have had to give way.
func evictions(t testing.TB, d *daemon.Daemon) (n int) {
	t.Helper()
	for line := range strings.Lines(string(d.Call(t, "GET", "/metrics", nil).Body)) {
		if text, found := strings.CutPrefix(line, "stasis_clients_evicted_total "); found {
			if _, err := fmt.Sscan(text, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("there is no metric of clients that gave way")
	return 0
}

// unread: clients that ask for much and read nothing until one has given way. Those
// that most waits for are closed, with the reason where it reaches them.
func unread(t *testing.T, d *daemon.Daemon, page string) {
	t.Helper()
	before := evictions(t, d)
	const asks = 2
	const ask = `{"id":1,"method":"Runtime.evaluate","params":{"returnByValue":true,"expression":"'x'.repeat(50 * 1024 * 1024)"}}`
	var all []*websocket.Conn
	daemon.Eventually(t, time.Minute, "there is room for six clients", func() bool {
		for len(all) < 6 {
			ws, _, err := websocket.Dial(t.Context(), page, nil) //nolint:bodyclose // as above
			if err != nil {
				return false
			}
			all = append(all, ws)
		}
		return true
	})
	for _, ws := range all {
		for range asks {
			if err := ws.Write(t.Context(), websocket.MessageText, []byte(ask)); err != nil {
				break
			}
		}
	}
	daemon.Eventually(t, 3*time.Minute, "a client that does not read gives way", func() bool { return evictions(t, d) > before })
	closed := 0
	for _, ws := range all {
		ws.SetReadLimit(-1)
		for asked := 0; asked < asks; asked++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, _, err := ws.Read(ctx)
			cancel()
			var closing websocket.CloseError
			if errors.As(err, &closing) {
				if closing.Code != websocket.StatusTryAgainLater || !strings.HasPrefix(closing.Reason, "too slow: ") {
					t.Errorf("closed with %d %q", closing.Code, closing.Reason)
				}
				closed++
			}
			if err != nil {
				break
			}
		}
		_ = ws.CloseNow()
	}
	t.Logf("%d of 6 clients that do not read were closed with a reason", closed)
}

// pageOf is a page of a session's.
func pageOf(t *testing.T, url string) string {
	t.Helper()
	w := dial(t, url)
	defer w.close()
	var made struct{ TargetID string }
	w.call("", "Target.createTarget", obj{"url": "about:blank"}, &made)
	return made.TargetID
}
