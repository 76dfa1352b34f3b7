package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/e2e/daemon"
)

// closeKeyDeleted is the close code of a connection whose key was deleted.
const closeKeyDeleted = websocket.StatusCode(4003)

// TestAttackRights tries to exceed the rights of keys and tickets, on one daemon. Its
// sessions have the shell, which starts faster: no right depends on the engine.
func TestAttackRights(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}}))
	for _, c := range []struct {
		name string
		test func(*testing.T, *daemon.Daemon)
	}{
		{"a ticket to look", ticketToLook},
		{"a deleted key", deletedKey},
		{"an ID that is another's session", idOfAnothersSession},
		{"guessed keys", guessedKeys}, // last, because it uses up the budget of the address
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, d) })
	}
	nothingLeft(t, d)
}

// looks are the links in a session's answer.
type looks struct {
	liveSession
	Live    string `json:"vnc_url"`
	Control string `json:"agent_url"`
}

func linksOf(t *testing.T, d *daemon.Daemon, key, id string) (s looks) {
	t.Helper()
	a := d.CallAs(t, key, http.MethodGet, at(id, ""), nil)
	if a.Status != http.StatusOK {
		t.Fatalf("session = %d\n%s", a.Status, a.Body)
	}
	a.Into(t, &s)
	return s
}

func ticketIn(url string) string {
	_, ticket, _ := strings.Cut(url, "ticket=")
	return ticket
}

// ticketToLook checks that the ticket of the live view opens the live view and nothing
// else, and that the ticket of CDP opens no live view.
func ticketToLook(t *testing.T, d *daemon.Daemon) {
	id := begin(t, d, obj{}).ID
	s := linksOf(t, d, daemon.Key, id)
	base, _, _ := strings.Cut(s.CDP, "?")
	view, control, drive := ticketIn(s.Live), ticketIn(s.Control), ticketIn(s.CDP)
	for _, path := range []string{"/live"} {
		if a := d.CallAs(t, "", http.MethodGet, at(id, path+"?ticket="+view), nil); a.Status != http.StatusOK {
			t.Errorf("GET %s with the view ticket = %d %s", path, a.Status, a.Body)
		}
		wants(t, d.CallAs(t, "", http.MethodGet, at(id, path+"?ticket="+drive), nil), 401, "unauthorized")
	}
	if got := refusedUpgrade(t, base+"?ticket="+control, nil); got != 401 {
		t.Errorf("CDP with the control ticket = %d", got)
	}
	if got := refusedUpgrade(t, base+"?ticket="+view, nil); got != 401 {
		t.Errorf("CDP with the view ticket = %d", got)
	}
	w := dial(t, s.CDP)
	_, target := w.page()
	if got := refusedUpgrade(t, base+"/page/"+target+"?ticket="+view, nil); got != 401 {
		t.Errorf("a page's CDP with the view ticket = %d", got)
	}
	connect := "ws" + strings.TrimPrefix(d.URL, "http") + "/v1/connect?ticket="
	for _, ticket := range []string{view, control, drive} {
		if got := refusedUpgrade(t, connect+ticket, nil); got != 401 {
			t.Errorf("connect with a session's ticket = %d", got)
		}
		for _, c := range []struct{ method, path string }{
			{"DELETE", ""}, {"POST", "/navigate"}, {"GET", "/screenshot"}, {"GET", "/status"}, {"POST", "/pause"}, {"GET", "/files"}, {"GET", ""},
		} {
			if status, _ := plain(t, d, c.method, at(id, c.path+"?ticket="+ticket), http.Header{"Authorization": {""}}); status != 401 {
				t.Errorf("%s %s with a ticket = %d", c.method, c.path, status)
			}
		}
	}
	for _, path := range []string{"/json/list", "/json/version", "/json/list/", "/json/version/"} {
		wants(t, d.CallAs(t, "", http.MethodGet, at(id, path+"?ticket="+view), nil), 401, "unauthorized")
		a := d.CallAs(t, "", http.MethodGet, at(id, path+"?ticket="+drive), nil)
		if a.Status != http.StatusOK || strings.Contains(string(a.Body), view) {
			t.Errorf("GET %s with the CDP ticket = %d %s", path, a.Status, a.Body)
		}
	}
	finish(t, d, id, throwAway)
	wants(t, d.CallAs(t, "", http.MethodGet, at(id, "/live?ticket="+view), nil), 401, "unauthorized")
}

// keyWith makes a key with rights and returns its ID and secret.
func keyWith(t *testing.T, d *daemon.Daemon, user string, rights ...string) (id, secret string) {
	t.Helper()
	var k struct {
		ID     string
		Secret string
	}
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/keys", obj{"name": user, "user_id": user, "rights": rights}).Into(t, &k)
	return k.ID, k.Secret
}

// deletedKey checks that deleting a key closes its connections and ends its tickets. Its
// sessions continue, and another key of the user drives them.
func deletedKey(t *testing.T, d *daemon.Daemon) {
	id, gone := keyWith(t, d, "alice", "use")
	_, stays := keyWith(t, d, "alice", "use")
	s := beginAs(t, d, gone, obj{})
	links := linksOf(t, d, gone, s.ID)
	base, _, _ := strings.Cut(s.CDP, "?")
	byTicket := dial(t, s.CDP)
	byKey := dialAs(t, base, gone)
	others := dialAs(t, base, stays)
	_, target := byTicket.page()
	byPage := dial(t, strings.Replace(s.CDP, "/cdp?", "/cdp/page/"+target+"?", 1))
	stream := follows(t, d, gone, s.ID)
	var once struct {
		URL string `json:"connect_url"`
	}
	a := d.CallAs(t, gone, http.MethodPost, "/v1/tickets", nil)
	a.Into(t, &once)
	if once.URL == "" {
		t.Fatalf("ticket = %d %s", a.Status, a.Body)
	}

	d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/keys/"+id, nil)
	for name, w := range map[string]*wire{"by ticket": byTicket, "by key": byKey, "of a page": byPage} {
		select {
		case <-w.closed:
			if w.status != closeKeyDeleted {
				t.Errorf("the socket %s closed with %d", name, w.status)
			}
		case <-time.After(grace):
			t.Errorf("the socket %s stays open", name)
		}
	}
	select {
	case last := <-stream:
		if !strings.Contains(last, "key_deleted") {
			t.Errorf("the stream ended with %q", last)
		}
	case <-time.After(grace):
		t.Error("the stream stays open")
	}
	for _, url := range []string{s.CDP, once.URL} {
		if got := refusedUpgrade(t, url, nil); got != 401 {
			t.Errorf("dial %s = %d", url, got)
		}
	}
	wants(t, d.CallAs(t, "", http.MethodGet, at(s.ID, "/live?ticket="+ticketIn(links.Live)), nil), 401, "unauthorized")
	wants(t, d.CallAs(t, gone, http.MethodGet, at(s.ID, ""), nil), 401, "unauthorized")

	others.call("", "Browser.getVersion", nil, nil)
	now := linksOf(t, d, stays, s.ID)
	if now.Status != "running" || now.CDP == s.CDP {
		t.Errorf("the session is %s at %s, was at %s", now.Status, now.CDP, s.CDP)
	}
	dial(t, now.CDP).page()
	var list []liveSession
	d.CallAs(t, stays, http.MethodGet, "/v1/sessions", nil).Into(t, &list)
	if len(list) != 1 { // the one-use ticket has created none
		t.Errorf("%d sessions", len(list))
	}
	finish(t, d, s.ID, throwAway)
}

// dialAs connects with a key in a header.
func dialAs(t *testing.T, url, key string) *wire {
	t.Helper()
	return dialWith(t, url, http.Header{"X-Api-Key": {key}})
}

// follows reads a session's events and returns their last data line when the stream
// ends.
func follows(t *testing.T, d *daemon.Daemon, key, id string) <-chan string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.URL+at(id, "/events"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	answer, err := http.DefaultClient.Do(r) //nolint:bodyclose // closed when the stream has ended
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("events = %d", answer.StatusCode)
	}
	ended := make(chan string, 1)
	go func() {
		defer func() { _ = answer.Body.Close() }() // only read from
		last, lines := "", bufio.NewScanner(answer.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				last = data
			}
		}
		ended <- last
	}()
	return ended
}

// idOfAnothersSession checks that a session gets nothing from another user's agents that
// use its ID.
func idOfAnothersSession(t *testing.T, d *daemon.Daemon) {
	alice, bob := newKey(t, d, "alice"), newKey(t, d, "bob")
	const id, note = "squatted", "/api/v1/public/memory/v2/session"
	doc := at(id, "/scopes/agent/planner/snapshots/")
	at := obj{"scope": "agent", "schemaVersion": "1.0", "createdAt": "2026-11-22T10:00:00Z", "data": obj{"step": 1}, "appData": obj{}}
	const docID = "018f2f0e-0000-7000-8000-000000000001"
	if a := d.CallAs(t, alice, http.MethodPut, doc+docID+"?latest=true", at); a.Status/100 != 2 {
		t.Fatalf("put = %d %s", a.Status, a.Body)
	}
	if a := d.CallAs(t, alice, http.MethodPost, note, obj{"session_id": id, "open_tasks": []string{"hers"}}); a.Status/100 != 2 {
		t.Fatalf("note = %d %s", a.Status, a.Body)
	}
	everybody := daemon.Key // its user is "default", and it may act for all users
	if a := d.CallAs(t, everybody, http.MethodPost, note, obj{"session_id": id, "open_tasks": []string{"the operator's"}}); a.Status/100 != 2 {
		t.Fatalf("note = %d %s", a.Status, a.Body)
	}
	beginAs(t, d, bob, obj{"session_id": id})
	d.CallAs(t, bob, http.MethodPost, note, obj{"session_id": id, "open_tasks": []string{"his"}})

	for _, path := range []string{doc + docID, doc + "latest", strings.TrimSuffix(doc, "/"), strings.TrimSuffix(doc, "snapshots/") + "manifest"} {
		if a := d.CallAs(t, alice, http.MethodGet, path, nil); a.Status != http.StatusOK {
			t.Errorf("GET %s = %d %s", path, a.Status, a.Body)
		}
	}
	if a := d.CallAs(t, bob, http.MethodGet, doc+docID, nil); a.Status != http.StatusNotFound {
		t.Errorf("bob reads %d %s", a.Status, a.Body)
	}
	for key, want := range map[string]string{alice: "hers", bob: "his", everybody: "the operator's"} {
		if a := d.CallAs(t, key, http.MethodGet, note+"/"+id, nil); !strings.Contains(string(a.Body), want) {
			t.Errorf("the note of %s = %d %s", want, a.Status, a.Body)
		}
	}
	finish(t, d, id, throwAway)
	if a := d.CallAs(t, alice, http.MethodDelete, "/v1/sessions/"+id+"/scopes", nil); a.Status/100 != 2 {
		t.Errorf("delete = %d %s", a.Status, a.Body)
	}
}

// guessers guess at once: each refusal takes a quarter of a second.
const guessers = 20

// guessedKeys checks that wrong keys from one address are soon limited, and that right
// keys from the same address still work.
func guessedKeys(t *testing.T, d *daemon.Daemon) {
	old := begin(t, d, obj{}).ID
	link := at(old, "/live?ticket="+ticketIn(linksOf(t, d, daemon.Key, old).Live))
	finish(t, d, old, throwAway)
	for i := range 100 { // an open live view with an old link is not a guess
		if a := d.CallAs(t, "", http.MethodGet, link, nil); a.Status != http.StatusUnauthorized {
			t.Fatalf("an old link, the %dth time = %d %s", i, a.Status, a.Body)
		}
	}
	if a := d.CallAs(t, "key-number-never", http.MethodGet, "/v1/me", nil); a.Status != http.StatusUnauthorized {
		t.Errorf("a wrong key after old links = %d %s", a.Status, a.Body)
	}
	made := newKey(t, d, "carol") // not used before
	var (
		mu      sync.Mutex
		refused int
		guesses sync.WaitGroup
	)
	for by := range guessers {
		guesses.Go(func() {
			for i := by; i < 300; i += guessers {
				forged := http.Header{"X-Forwarded-For": {fmt.Sprintf("192.0.2.%d", i%250)}}
				a := d.Send(t, fmt.Sprintf("key-number-%05d", i), http.MethodGet, "/v1/me", nil, forged)
				switch a.Status {
				case http.StatusUnauthorized:
				case http.StatusTooManyRequests:
					wants(t, a, 429, "too_many_attempts")
					if after := a.Header.Get("Retry-After"); after == "" || after == "0" {
						t.Errorf("guess %d: Retry-After %q", i, after)
					}
					mu.Lock()
					refused++
					mu.Unlock()
				default:
					t.Errorf("guess %d = %d %s", i, a.Status, a.Body)
				}
			}
		})
	}
	guesses.Wait()
	if refused < 200 {
		t.Errorf("%d of 300 guesses were refused", refused)
	}
	ticket := func() int {
		status, _ := plain(t, d, http.MethodGet, at("x", "/live?ticket=guess"), nil)
		return status
	}
	// The address gets an attempt back every six seconds, so the first may be looked up.
	if first := ticket(); first != http.StatusTooManyRequests && ticket() != http.StatusTooManyRequests {
		t.Errorf("two guessed tickets were looked up, the first = %d", first)
	}
	for _, key := range []string{daemon.Key, made} {
		var me json.RawMessage
		a := d.CallAs(t, key, http.MethodGet, "/v1/me", nil)
		if a.Into(t, &me); a.Status != http.StatusOK {
			t.Errorf("a right key = %d %s", a.Status, a.Body)
		}
	}
}
