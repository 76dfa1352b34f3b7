package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/e2e/daemon"
)

// inGo runs the story with chromedp.
type inGo struct {
	storyInput
	whole *testing.T // of the whole story
	d     *daemon.Daemon

	cdp    string
	tabs   []string
	stream *follower
	client *wire
}

func (g *inGo) beforeKill(t *testing.T) {
	d := g.d
	g.URL = d.URL
	s := begin(t, d, obj{"session_id": g.Session, "user_id": g.User, "auto_save": obj{"interval_seconds": 5}, "restart": g.Restart})
	g.cdp = s.CDP
	g.stream = listen(d, g.Session)
	daemon.Eventually(t, grace, "the session has an agent", func() bool {
		var now struct {
			HasAgent bool `json:"has_agent"`
		}
		d.Must(t, http.StatusOK, http.MethodGet, at(g.Session), nil).Into(t, &now)
		return now.HasAgent
	})
	for _, m := range []obj{{"message": "Book the second one."}, {"type": "THOUGHT", "message": "Two rooms."}, {"type": "QUESTION", "message": "For how many?"}} {
		d.Must(t, http.StatusOK, http.MethodPost, at(g.Session, "/message"), m)
	}
	for _, n := range []obj{
		{"session_id": g.Session, "project_path": "/home/ada/trip", "key_decisions": []string{"the second one"}, "open_tasks": []string{"ask"}},
		{"session_id": g.Session, "key_decisions": []string{"by train"}, "open_tasks": []string{"book"}, "event": "checkpoint"},
	} {
		d.Must(t, http.StatusOK, http.MethodPost, "/api/v1/public/memory/v2/session", n)
	}

	steps := slices.Clone(g.Apps[0].Login)
	steps = append(append(steps, openTab("about:blank"), toTab("about:blank")), g.Apps[1].Login...)
	drive(t, chromeDP, s.CDP, append(steps, openTab(g.Calm), toTab(g.Calm), await(`document.title === "calm"`))...)
	daemon.Eventually(t, grace, "a checkpoint with both logins", func() bool { return g.savedLogins(t) == 2 })
	g.tabs = tabsOf(t, d, g.Session)

	g.client = dial(g.whole, s.CDP)
	page := ""
	for _, info := range g.client.targets() {
		if info.Type == "page" && info.URL == g.Calm {
			page = g.client.attach(info.ID)
		}
	}
	if page == "" {
		t.Fatalf("no tab is at %s: %+v", g.Calm, g.client.targets())
	}
	g.client.post(page, "Page.navigate", obj{"url": g.Held}) // the answer comes only with the page
	g.awaitNavigation(t)
}

// awaitNavigation waits until the site has received the last tab's request.
func (g *inGo) awaitNavigation(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), grace)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.Asked, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err == nil {
		err = answer.Body.Close()
	}
	if err != nil {
		t.Fatalf("the site received no request for %s: %v", g.Held, err)
	}
}

// savedLogins returns how many of the applications' logins the last automatic checkpoint
// has; 0 if it does not have the last tab with its page.
func (g *inGo) savedLogins(t testing.TB) (n int) {
	t.Helper()
	var now struct {
		AutoSave struct {
			ID string `json:"last_snapshot_id"`
		} `json:"auto_save"`
	}
	g.d.Must(t, http.StatusOK, http.MethodGet, at(g.Session), nil).Into(t, &now)
	if now.AutoSave.ID == "" {
		return 0
	}
	var saved struct {
		Logins []struct{ Names []string }
	}
	g.d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+now.AutoSave.ID, nil).Into(t, &saved)
	var doc struct{ Tabs []struct{ URL string } }
	g.d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+now.AutoSave.ID+"/state", nil).Into(t, &doc)
	if !slices.ContainsFunc(doc.Tabs, func(tab struct{ URL string }) bool { return tab.URL == g.Calm }) {
		return 0 // the checkpoint is older than the last tab, or than its page
	}
	for _, l := range saved.Logins {
		for _, name := range l.Names {
			if strings.HasPrefix(name, "DW") || name == "auth-tokens" {
				n++
			}
		}
	}
	return n
}

func (g *inGo) afterKill(t *testing.T) {
	d := g.d
	if code := g.client.ended(); g.Cause == "Chrome crashed" && code != 1011 {
		t.Errorf("the client's socket was closed with %d", code)
	}
	g.resume(t)
	g.proveTabs(t)
	g.proveMessages(t)
	g.proveNotes(t)
	g.proveHistory(t)
	finish(t, d, g.Session, throwAway)
}

// resume resumes the session, or checks that it continues automatically.
func (g *inGo) resume(t *testing.T) {
	var a struct {
		Status    string
		SessionID string `json:"session_id"`
		CDP       string `json:"cdp_url"`
	}
	if g.Restart == "on_crash" {
		g.d.Must(t, http.StatusOK, http.MethodPost, at(g.Session, "/resume"), nil).Into(t, &a)
		if a.Status != "already_running" || a.CDP != g.cdp || !look(t, g.d, g.Session).Restarted {
			t.Errorf("%+v", a)
		}
		return
	}
	daemon.Eventually(t, grace, "the session has ended", func() bool { return ended(look(t, g.d, g.Session).Status) })
	g.d.Must(t, http.StatusOK, http.MethodPost, at(g.Session, "/resume"), nil).Into(t, &a)
	if a.Status != "resumed" || a.SessionID != g.Session || a.CDP == g.cdp {
		t.Errorf("%+v", a)
	}
	g.cdp = a.CDP
}

// proveTabs checks that the tabs are the same, in the same order, and that the
// applications answer for their accounts.
func (g *inGo) proveTabs(t *testing.T) {
	t.Helper()
	// A loading tab shows its address only after the site has answered.
	daemon.Eventually(t, grace, "the same tabs", func() bool { return slices.Equal(g.tabs, tabsOf(t, g.d, g.Session)) })
	for _, app := range g.Apps {
		got := drive(t, chromeDP, g.cdp, append([]step{toTab(app.URL)}, app.Proof...)...)
		if page := text(t, got[len(got)-1]); !strings.Contains(page, app.Secret) {
			t.Errorf("%s answers %.200q", app.URL, page)
		}
	}
}

// tabsOf returns the addresses of a session's tabs, without fragments (#). Node-RED
// makes a new flow, with another fragment, on each load if none was stored.
func tabsOf(t testing.TB, d *daemon.Daemon, id string) (urls []string) {
	t.Helper()
	var tabs []struct{ URL string }
	d.Must(t, http.StatusOK, http.MethodGet, at(id, "/json/list"), nil).Into(t, &tabs)
	for _, tab := range tabs {
		address, _, _ := strings.Cut(tab.URL, "#")
		urls = append(urls, address)
	}
	return urls
}

// proveMessages checks that the messages are there in order, and the status of the task.
func (g *inGo) proveMessages(t *testing.T) {
	t.Helper()
	for after, want := range [][]string{{"1 USER Book the second one.", "2 THOUGHT Two rooms.", "3 QUESTION For how many?"},
		{"2 THOUGHT Two rooms.", "3 QUESTION For how many?"}, {"3 QUESTION For how many?"}, nil} {
		var listed struct {
			Messages []struct {
				ID            int64
				Type, Content string
			}
		}
		g.d.Must(t, http.StatusOK, http.MethodGet, at(g.Session, fmt.Sprint("/messages?after_id=", after)), nil).Into(t, &listed)
		var got []string
		for _, m := range listed.Messages {
			got = append(got, fmt.Sprint(m.ID, " ", m.Type, " ", m.Content))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("messages after %d (-want +got):\n%s", after, diff)
		}
	}
	var status struct {
		Execution string `json:"execution_status"`
	}
	g.d.Must(t, http.StatusOK, http.MethodGet, at(g.Session, "/status"), nil).Into(t, &status)
	if status.Execution != "waiting_for_input" {
		t.Errorf("the task is %s", status.Execution)
	}
}

// proveNotes checks that every route returns the same notes.
func (g *inGo) proveNotes(t *testing.T) {
	t.Helper()
	type notes struct {
		Path      string   `json:"project_path"`
		Decisions []string `json:"key_decisions"`
		Tasks     []string `json:"open_tasks"`
	}
	want := notes{"/home/ada/trip", []string{"the second one", "by train"}, []string{"book"}}
	for _, path := range []string{"/api/v1/public/memory/v2/session/latest?user_id=" + url.QueryEscape(g.User),
		"/api/v1/public/memory/v2/session/" + g.Session, at(g.Session, "/notes")} {
		var got struct {
			Data notes `json:"session_data"`
		}
		g.d.Must(t, http.StatusOK, http.MethodGet, path, nil).Into(t, &got)
		if diff := cmp.Diff(want, got.Data); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	var report struct {
		Notes *struct {
			SessionID string `json:"session_id"`
			Data      notes
		}
	}
	g.d.Must(t, http.StatusOK, http.MethodGet, at(g.Session, "/restore-report"), nil).Into(t, &report)
	if report.Notes == nil || report.Notes.SessionID != g.Session || !cmp.Equal(want, report.Notes.Data) {
		t.Errorf("the restore report has %+v", report.Notes)
	}
}

// proveHistory checks that there are two runs with their events, that the first says why
// it ended, and that a stream that was cut off continues where it stopped.
func (g *inGo) proveHistory(t *testing.T) {
	t.Helper()
	var events []string
	record := func(run history, number int, types ...string) {
		for _, kind := range types {
			if !slices.Contains(run.types(), kind) {
				t.Errorf("run %d has no event %q: %q", number, kind, run.types())
			}
		}
		for i, kind := range run.types() {
			events = append(events, fmt.Sprintf("%d-%d %s", number, i+1, kind))
		}
	}
	daemon.Eventually(t, grace, "the run has the tabs' navigations", func() bool {
		runs, navigated := historyOf(t, g.d, g.Session), 0
		for _, kind := range runs[len(runs)-1].types() {
			if kind == "navigated" {
				navigated++
			}
		}
		return navigated >= 3
	})
	runs := historyOf(t, g.d, g.Session)
	if len(runs) != 2 || runs[0].Status != "failed" || runs[0].Cause != g.Cause || runs[1].Status != "running" || runs[1].Cause != "" {
		t.Fatalf("runs: %+v", runs)
	}
	record(runs[0], 1, "started", "client_connected", "message", "note", "navigated", "client_disconnected", "saved", "ended")
	if end := runs[0].events[len(runs[0].events)-1]; end.Type != "ended" || end.Data["cause"] != g.Cause {
		t.Errorf("the first run ends with %+v", end)
	}
	record(runs[1], 2, "restored", "navigated", "client_connected")
	got := g.stream.rest(t)
	if len(got) == 0 || len(got) > len(events) || !slices.Equal(got, events[:len(got)]) {
		t.Fatalf("the stream had\n %q\nof\n %q", got, events)
	}
	for more := []string{"some"}; len(more) > 0 && len(got) < len(events); got = append(got, more...) { // a stream ends with each run
		last, _, _ := strings.Cut(got[len(got)-1], " ")
		more, _ = follow(t, g.d, g.Session, last, len(events)-len(got))
	}
	if diff := cmp.Diff(events, got); diff != "" {
		t.Errorf("the stream (-history +received):\n%s", diff)
	}
}

// follower reads a session's event stream during the test, until it is cut off.
type follower struct {
	events []string
	err    error
	over   chan struct{}
}

func listen(d *daemon.Daemon, id string) *follower {
	f := &follower{over: make(chan struct{})}
	go func() {
		defer close(f.over)
		f.events, _, f.err = stream(d, id, "", -1)
	}()
	return f
}

// rest waits until the stream has ended and returns its events.
func (f *follower) rest(t testing.TB) []string {
	t.Helper()
	select {
	case <-f.over:
	case <-time.After(grace):
		t.Fatal("the stream does not end")
	}
	if f.err != nil {
		t.Fatal(f.err)
	}
	return f.events
}
