package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// A client that closes "the browser" only closes its own connection. The next client
// finds the session and what its pages have in memory.
func closingClientLeavesTheSession(t *testing.T, d *daemon.Daemon) {
	s := create(t, d, body{"start_url": "data:text/html,<title>mine</title>"})
	run(t, puppeteer, script{Endpoint: s.CDP, End: "close",
		Steps: []step{await(`document.title === "mine"`), evaluate(`window.mark = "puppeteer"`)}})
	got := run(t, playwright, script{Endpoint: s.CDP, End: "close", Steps: []step{evaluate(`window.mark`)}})
	if mark := text(t, got[0]); mark != "puppeteer" {
		t.Errorf("the page holds %q", mark)
	}
	w := dial(t, s.CDP)
	w.call("", "Browser.close", nil, nil)
	if code := w.ended(); code != int(websocket.StatusNormalClosure) {
		t.Errorf("Browser.close closed the connection with %d", code)
	}
	if now := see(t, d, s.ID); now.Status != "running" {
		t.Errorf("the session is %s", now.Status)
	}
	if mark := text(t, drive(t, chromeDP, s.CDP, evaluate(`window.mark`))[0]); mark != "puppeteer" {
		t.Errorf("the page holds %q for the last client", mark)
	}
}

// Two clients work at the same time, and each waits for the other.
func twoClientsAtOnce(t *testing.T, d *daemon.Daemon) {
	s := create(t, d, body{})
	ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
	defer cancel()
	other := make(chan error, 1)
	go func() {
		_, err := script{Endpoint: s.CDP, Steps: []step{
			toTab("shared"), evaluate(`window.received = true`), await(`window.answered === true`)}}.by(ctx, playwright)
		other <- err
	}()
	drive(t, puppeteer, s.CDP,
		openTab("data:text/html,<title>shared</title>"), await(`window.received === true`), evaluate(`window.answered = true`))
	if err := <-other; err != nil {
		t.Error(err)
	}
}

// Clients that start with an HTTP address find the browser and a page.
func discovery(t *testing.T, d *daemon.Daemon) {
	s := create(t, d, body{"start_url": "data:text/html,<title>found</title>"})
	path := "/v1/sessions/" + s.ID
	var version map[string]string
	d.Must(t, http.StatusOK, http.MethodGet, path+"/json/version", nil).Into(t, &version)
	if !strings.HasPrefix(version["Browser"], "Chrome/") || version["Protocol-Version"] == "" {
		t.Errorf("versions: %v", version)
	}
	ticket := s.CDP[strings.IndexByte(s.CDP, '?'):]
	if a := d.CallAs(t, "", http.MethodGet, path+"/json/version/"+ticket, nil); a.Status != http.StatusOK {
		t.Errorf("with the session's ticket: %d %s", a.Status, a.Body)
	}
	if a := d.CallAs(t, "", http.MethodGet, path+"/json/list", nil); a.Status != http.StatusUnauthorized {
		t.Errorf("without key and ticket: %d %s", a.Status, a.Body)
	}
	if got := drive(t, chromeDP, version["webSocketDebuggerUrl"], await(`document.title`)); text(t, got[0]) != "found" {
		t.Errorf("through the browser's address the page's title is %s", got[0])
	}

	var pages []struct{ Type, Title, WebSocketDebuggerURL string }
	d.Must(t, http.StatusOK, http.MethodGet, path+"/json/list", nil).Into(t, &pages)
	if len(pages) != 1 || pages[0].Type != "page" || pages[0].Title != "found" {
		t.Fatalf("pages: %+v", pages)
	}
	page := dial(t, pages[0].WebSocketDebuggerURL)
	if title := page.eval("", "document.title"); title != "found" {
		t.Errorf("through the page's address its title is %q", title)
	}

	got := run(t, playwright, script{Endpoint: d.URL + path, Headers: map[string]string{"Authorization": "Bearer " + daemon.Key},
		Steps: []step{evaluate(`document.title`)}})
	if title := text(t, got[0]); title != "found" {
		t.Errorf("through the HTTP address Playwright reads the title %q", title)
	}
}

// One WebSocket is a whole session: it restores the environment, and the session is
// saved when the client disconnects. It takes a key in a header, or a ticket from
// clients that cannot send headers.
func connect(t *testing.T, d *daemon.Daemon) {
	site := apps.StartProbe(t)
	connect := "ws" + strings.TrimPrefix(d.URL, "http") + "/v1/connect?"
	outcome := func(id, mode string) {
		t.Helper()
		daemon.Eventually(t, stepDeadline, "the session "+id+" has ended", func() bool { return see(t, d, id).Status == "completed" })
		o := see(t, d, id).Outcome
		if o == nil || o.Snapshot == nil || o.Snapshot.Mode != mode || o.Default == nil || !o.Default.Moved {
			t.Errorf("the outcome of %s: %+v", id, o)
		}
	}

	run(t, puppeteer, script{Headers: map[string]string{"Authorization": "Bearer " + daemon.Key},
		Endpoint: connect + url.Values{"session_id": {"one-shot"}, "user_id": {"connecting"}, "save_snapshot_mode": {"filesystem"},
			"save_as_default": {"true"}, "labels": {`{"team":"qa"}`}}.Encode(),
		Steps: []step{visit(site.URL + "/login"), fill("#user", demosite.User), fill("#password", demosite.Password), click("#submit"),
			await(`document.title === "me: demo"`)}})
	outcome("one-shot", "filesystem")

	var ticket struct {
		Ticket string
		URL    string `json:"connect_url"`
	}
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/tickets", nil).Into(t, &ticket)
	more := "&restore_default_environment_from_user_id=connecting&save_snapshot_mode=memory&save_as_default=true&session_id=second"
	got := drive(t, playwright, ticket.URL+more, await(`document.title === "me: demo"`), evaluate(`document.title`))
	if title := text(t, got[1]); title != "me: demo" {
		t.Errorf("the restored tab is %q", title)
	}
	outcome("second", "memory")
	if status := refusedUpgrade(t, ticket.URL, nil); status != http.StatusUnauthorized {
		t.Errorf("a used ticket: %d", status)
	}
	if status := refusedUpgrade(t, connect+"api_key="+daemon.Key, nil); status != http.StatusUnauthorized {
		t.Errorf("a key in the URL: %d", status)
	}

	ws, answer, err := websocket.Dial(t.Context(), connect, //nolint:bodyclose // an upgrade has none
		&websocket.DialOptions{HTTPHeader: http.Header{"X-Api-Key": {daemon.Key}}})
	if err != nil {
		t.Fatal(err)
	}
	id := answer.Header.Get("X-Session-Id")
	daemon.Eventually(t, stepDeadline, "the session has its client", func() bool { return see(t, d, id).Status == "running" })
	if err := ws.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
	daemon.Eventually(t, stepDeadline, "the session has ended without a save", func() bool {
		now := see(t, d, id)
		return now.Status == "completed" && now.Outcome != nil && now.Outcome.Snapshot == nil
	})
}

// When a session ends, its clients' connections close with the reason, and no client can
// connect any more.
func endClosesTheSockets(t *testing.T, d *daemon.Daemon) {
	for _, mode := range []string{"none", "filesystem", "memory"} {
		s := create(t, d, body{})
		clients := []*wire{dial(t, s.CDP), dial(t, s.CDP)}
		for _, c := range clients {
			c.call("", "Browser.getVersion", nil, nil)
		}
		end(t, d, s.ID, "save_snapshot_mode="+mode)
		for _, c := range clients {
			if code := c.ended(); code != 4001 {
				t.Errorf("%s: a client's socket was closed with %d", mode, code)
			}
		}
		if status := refusedUpgrade(t, s.CDP, nil); status != http.StatusUnauthorized {
			t.Errorf("%s: the ticket of an ended session: %d", mode, status)
		}
		if status := refusedUpgrade(t, s.CDP, http.Header{"Authorization": {"Bearer " + daemon.Key}}); status != http.StatusConflict && status != http.StatusUnauthorized {
			t.Errorf("%s: an ended session: %d", mode, status)
		}
		if now := see(t, d, s.ID); now.Status != "completed" || now.CDP != "" {
			t.Errorf("%s: the ended session: %+v", mode, now)
		}
	}
}
