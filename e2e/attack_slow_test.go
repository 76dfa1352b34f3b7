package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// partialRequest opens a connection, and sends a request's header with the key and a part of
// its body.
func partialRequest(t testing.TB, d *daemon.Daemon, method, path string, length int, body string) net.Conn {
	t.Helper()
	at, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it may be closed already
	_, err = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n%s",
		method, path, at.Host, daemon.Key, length, body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// statusOf returns the status of the answer on a connection.
func statusOf(t testing.TB, c net.Conn) int {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))    // a failure shows in the read below
	answer, err := http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // closing it would read a stream to its end
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// TestAttackSlowUploads checks that unfinished uploads do not keep other clients from
// importing. They are ended after the client patience, and leave nothing.
func TestAttackSlowUploads(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Args: shellUnlessLong(), Env: []string{"STASIS_CLIENT_PATIENCE=20s"}}))
	var slow []net.Conn
	for _, format := range []string{"datadir", "stasis", "playwright"} {
		slow = append(slow, partialRequest(t, d, "POST", "/v1/snapshots?format="+format, 1<<20, "{"))
	}
	daemon.Eventually(t, time.Minute, "every upload has a run directory", func() bool { return len(runDirs(t, d)) == len(slow) })
	state := `{"cookies":[{"name":"n","value":"v","domain":"a.example","path":"/","expires":-1,"httpOnly":false,"secure":false,"sameSite":"Lax"}],"origins":[]}`
	if a := within(t, d, "POST", "/v1/snapshots?format=playwright", "application/json", strings.NewReader(state)); a.Status != http.StatusCreated {
		t.Errorf("import during slow uploads: %d %s", a.Status, a.Body)
	}
	for _, c := range slow {
		if status := statusOf(t, c); status != http.StatusBadRequest {
			t.Errorf("a stopped upload got status %d", status)
		}
	}
	daemon.Eventually(t, soon, "the run directories of the uploads are removed", func() bool { return len(runDirs(t, d)) == 0 })
}

// slowMemory is the limit of a daemon's memory, in bytes, while its HTTP clients do not
// read. It is twice the budget and one comparison of two large documents, because Go
// collects when the heap has doubled. 1210 MB were measured. The short form has a quarter of
// the budget and of the documents.
const slowMemory = 1536 << 20

// TestAttackSlowReaders has many clients that request a large state or difference and do not
// read the answer. The daemon's memory stays within its limit, other calls are answered,
// and in the end these clients are disconnected.
func TestAttackSlowReaders(t *testing.T) {
	t.Parallel()
	budget, document, limit := 256<<20, 40<<20, slowMemory
	if !storetest.Long() {
		budget, document, limit = budget/4, document/4, limit/4+64<<20 // the daemon itself takes 40 MB
	}
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Unraced: true, Args: append(shellUnlessLong(), "--client-memory", strconv.Itoa(budget)), Env: []string{"STASIS_CLIENT_PATIENCE=8s"}}))
	saved := func(value string) string {
		state := `{"cookies":[],"origins":[{"origin":"https://a.example","localStorage":[{"name":"n","value":"` + strings.Repeat(value, document) + `"}]}]}`
		a := d.Send(t, daemon.Key, "POST", "/v1/snapshots?format=playwright", strings.NewReader(state), http.Header{"Content-Type": {"application/json"}})
		var made struct{ Snapshot struct{ ID string } }
		if err := json.Unmarshal(a.Body, &made); err != nil || a.Status != http.StatusCreated {
			t.Fatalf("%d %.300s %v", a.Status, a.Body, err)
		}
		return made.Snapshot.ID
	}
	one, two := saved("x"), saved("y")
	forgetPeak(t, d)
	const asked = 24
	for n := range asked {
		path := "/v1/snapshots/" + one + "/state"
		if n%4 == 3 {
			path = "/v1/snapshots/" + one + "/diff/" + two + "?values=true"
		}
		partialRequest(t, d, "GET", path, 0, "")
	}
	if a := within(t, d, "GET", "/v1/snapshots", "", nil); a.Status != http.StatusOK {
		t.Errorf("another client's call got status %d", a.Status)
	}
	daemon.Eventually(t, 5*time.Minute, "every request has ended", func() bool {
		return strings.Count(d.Log(), "snapshot_id/state")+strings.Count(d.Log(), "/diff/:other_id") >= asked
	})
	peak := peakMemory(t, d.PID())
	t.Logf("the daemon took %d MB", peak>>20)
	if peak > int64(limit) {
		t.Errorf("the daemon took %d MB", peak>>20)
	}
	if m := d.Call(t, "GET", "/metrics", nil); !strings.Contains(string(m.Body), "\nstasis_client_memory_bytes 0\n") {
		t.Errorf("memory is still held for clients:\n%s", m.Body)
	}
}

// TestAttackHalfMessages checks that a CDP client loses its slot if it announces a message and
// sends nothing, or only a part of it.
func TestAttackHalfMessages(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Args: append(shellUnlessLong(), "--max-clients", "1"), Env: []string{"STASIS_CLIENT_PATIENCE=3s"}}))
	s := create(t, d, body{"user_id": "ada", "engine": "shell"})
	header := []byte{0x81, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4} // a text message of 16 MiB, masked
	for name, sent := range map[string][]byte{"a header": header, "a part": append(header, make([]byte, 1<<20)...)} {
		var below net.Conn
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			var err error
			below, err = new(net.Dialer).DialContext(ctx, network, address)
			return below, err
		}, DisableKeepAlives: true}} // each try has a connection for itself, and the last one is below
		var ws *websocket.Conn
		daemon.Eventually(t, soon, "the slot of the last client is free", func() bool {
			var err error
			ws, _, err = websocket.Dial(t.Context(), s.CDP, &websocket.DialOptions{HTTPClient: client}) //nolint:bodyclose // an upgrade's answer has none, or an error of little length
			return err == nil
		})
		if _, err := below.Write(sent); err != nil {
			t.Fatal(err)
		}
		daemon.Eventually(t, soon, name+" and then nothing: its slot is free again", func() bool {
			next, _, err := websocket.Dial(t.Context(), s.CDP, nil) //nolint:bodyclose // as above, or an error of little length
			if err != nil {
				return false
			}
			_ = next.CloseNow()
			return true
		})
		_ = ws.CloseNow() // the daemon has closed it
		daemon.Eventually(t, soon, "no memory is held for clients", func() bool {
			return strings.Contains(string(d.Call(t, "GET", "/metrics", nil).Body), "\nstasis_client_memory_bytes 0\n")
		})
	}
}

// TestAttackStreams checks the maximum number of event streams of a session, and
// that an ended stream frees its slot.
func TestAttackStreams(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()}))
	s := create(t, d, body{"user_id": "ada", "engine": "shell"})
	var all []net.Conn
	open := func() int {
		c := partialRequest(t, d, "GET", "/v1/sessions/"+s.ID+"/events", 0, "")
		all = append(all, c)
		return statusOf(t, c)
	}
	status := open()
	for status == http.StatusOK && len(all) < 100 {
		status = open()
	}
	if status != http.StatusTooManyRequests || len(all) != 65 {
		t.Errorf("stream %d: %d", len(all), status)
	}
	_ = all[0].Close()
	daemon.Eventually(t, soon, "a stream can be opened again", func() bool { return open() == http.StatusOK })
}
