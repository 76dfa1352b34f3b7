package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// TestAttackHalfOpen opens thousands of connections that send nothing, or a part of a
// request. A client with a key creates a session, drives it and ends it meanwhile, and the
// daemon keeps no more connections than --max-connections.
func TestAttackHalfOpen(t *testing.T) {
	t.Parallel()
	sockets, limit := 2000, 256
	if storetest.Long() {
		sockets, limit = 10_000, 4096
	}
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell", "--max-connections", strconv.Itoa(limit)}}))
	alice := newKey(t, d, "alice")
	before := beginAs(t, d, alice, obj{})
	w := dial(t, before.CDP)
	page, _ := w.page()
	at, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{"", "G", "GET /v1/me HTTP/1.1\r\n", "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{", "\x16\x03\x01"}
	for i := range sockets {
		c, err := net.Dial("tcp", at.Host)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		t.Cleanup(func() { _ = c.Close() }) // the daemon may have closed it
		_, _ = io.WriteString(c, parts[i%len(parts)])
		if i%(sockets/4) != sockets/8 {
			continue
		}
		if got := w.eval(page, "6*7"); got != "42" {
			t.Errorf("beside %d connections, a page of a client that was there before gives %s", i, got)
		}
		http.DefaultClient.CloseIdleConnections() // the daemon closes those that wait longest
		s := beginAs(t, d, alice, obj{})
		other := dial(t, s.CDP)
		tab, _ := other.page()
		if got := other.eval(tab, "6*7"); got != "42" {
			t.Errorf("beside %d connections, the page of a new session gives %s", i, got)
		}
		d.CallAs(t, alice, http.MethodDelete, "/v1/sessions/"+s.ID+"?"+throwAway, nil)
	}
	if open := len(socketsOf(t, d)); open > limit+100 {
		t.Errorf("the daemon has %d open sockets; --max-connections is %d", open, limit)
	}
	finish(t, d, before.ID, throwAway)
}

// TestAttackCreates has one user send 200 creates, all willing to wait, to a daemon for 8
// sessions. A user who comes after them gets one of the first two places that become free,
// and every create is answered. In the short form it is 40 creates and 4 sessions.
func TestAttackCreates(t *testing.T) {
	t.Parallel()
	places, creates := 4, 40
	if storetest.Long() {
		places, creates = 8, 200
	}
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell", "--max-sessions", strconv.Itoa(places)}}))
	eve, bob := newKey(t, d, "eve"), newKey(t, d, "bob")
	made := make(chan string, creates)
	var others sync.WaitGroup
	for range creates {
		others.Go(func() {
			a := d.CallAs(t, eve, http.MethodPost, "/v1/sessions", obj{"wait_seconds": 600})
			var s liveSession
			switch a.Status {
			case http.StatusCreated:
				if err := json.Unmarshal(a.Body, &s); err != nil {
					t.Error(err)
				}
				made <- s.ID
			case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			default:
				t.Errorf("a create = %d %s", a.Status, a.Body)
			}
		})
	}
	held := make([]string, 0, creates)
	for range places {
		select {
		case id := <-made:
			held = append(held, id)
		case <-time.After(grace):
			t.Fatalf("only %d of %d places were taken", len(held), places)
		}
	}
	served := make(chan liveSession, 1)
	go func() { served <- beginAs(t, d, bob, obj{"wait_seconds": 600}) }()
	daemon.Eventually(t, time.Minute, "bob's create waits", func() bool { return waiting(t, d) == creates-places+1 })
	ends, got := 0, false
	for !got && ends < places {
		d.CallAs(t, eve, http.MethodDelete, "/v1/sessions/"+held[ends]+"?"+throwAway, nil)
		ends++
		select {
		case <-served:
			got = true
		case id := <-made: // the place went to eve
			held = append(held, id)
		case <-time.After(grace):
			t.Fatal("nobody got the place that became free")
		}
	}
	if !got || ends > 2 {
		t.Errorf("after %d places became free: bob has one: %v", ends, got)
	}
	if !got {
		t.FailNow()
	}
	// Nobody waits for the rest: their clients get an answer when the daemon ends their sessions.
	for _, id := range held[ends:] {
		d.CallAs(t, eve, http.MethodDelete, "/v1/sessions/"+id+"?"+throwAway, nil)
	}
	done := make(chan struct{})
	go func() { others.Wait(); close(done) }()
	for open := true; open; {
		select {
		case id := <-made:
			d.CallAs(t, eve, http.MethodDelete, "/v1/sessions/"+id+"?"+throwAway, nil)
		case <-done:
			open = false
		}
	}
}

// waiting returns how many creates wait for a slot.
func waiting(t *testing.T, d *daemon.Daemon) (n int) {
	t.Helper()
	m := string(d.CallAs(t, "", http.MethodGet, "/metrics", nil).Body)
	_, m, _ = strings.Cut(m, "\nstasis_creates_waiting ")
	if _, err := fmt.Sscan(m, &n); err != nil {
		t.Fatalf("/metrics has no count of waiting creates: %v", err)
	}
	return n
}
