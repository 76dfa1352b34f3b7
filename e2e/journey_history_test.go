package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
)

// apiEvent is an event as the API returns it.
type apiEvent struct {
	Sequence int64          `json:"sequence"`
	Type     string         `json:"type"`
	Data     map[string]any `json:"data"`
}

// history is a run with its events.
type history struct {
	ID     string `json:"run_id"`
	Status string `json:"status"`
	Cause  string `json:"cause"`
	events []apiEvent
}

// historyOf reads a session's runs in small pages. It fails if an event's number is not
// its position.
func historyOf(t testing.TB, d *daemon.Daemon, id string) []history {
	t.Helper()
	var list struct{ Runs []history }
	d.Must(t, http.StatusOK, http.MethodGet, at(id, "/runs"), nil).Into(t, &list)
	for i := range list.Runs {
		run := &list.Runs[i]
		for more, after := true, int64(0); more; {
			var page struct {
				Events []apiEvent `json:"events"`
				Next   int64      `json:"next_after_sequence"`
				More   bool       `json:"has_more"`
				Gap    bool       `json:"retention_gap"`
			}
			d.Must(t, http.StatusOK, http.MethodGet, at(id, fmt.Sprintf("/runs/%s/events?limit=7&after=%d", run.ID, after)), nil).Into(t, &page)
			for _, e := range page.Events {
				if after++; e.Sequence != after || page.Gap {
					t.Fatalf("run %d: event %d has number %d", i+1, after, e.Sequence)
				}
			}
			run.events, more = append(run.events, page.Events...), page.More
			if page.Next != after {
				t.Fatalf("next_after_sequence is %d after event %d", page.Next, after)
			}
		}
	}
	return list.Runs
}

// types returns the types of a run's events.
func (r history) types() (all []string) {
	for _, e := range r.events {
		all = append(all, e.Type)
	}
	return all
}

// follow reads a session's event stream after an ID, until it has n events or the stream
// ends. It returns "id type" of each, and the SSE event names.
func follow(t testing.TB, d *daemon.Daemon, id, after string, n int) (events, names []string) {
	t.Helper()
	events, names, err := stream(d, id, after, n)
	if err != nil {
		t.Fatal(err)
	}
	return events, names
}

// stream is follow without a test.
func stream(d *daemon.Daemon, id, after string, n int) (events, names []string, err error) {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL+at(id, "/events"), nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+daemon.Key)
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	in := bufio.NewScanner(answer.Body)
	var last, called string
	for len(events) != n && in.Scan() {
		name, value, _ := strings.Cut(in.Text(), ": ")
		switch name {
		case "id":
			last = value
		case "event":
			called = value
		case "data":
			if called == "heartbeat" {
				continue
			}
			var e apiEvent
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return nil, nil, err
			}
			events, names = append(events, last+" "+e.Type), append(names, called)
		}
	}
	return events, names, nil
}

// The events of a session are stored and streamed in order, live and later, also to a
// client that reconnects. A killed daemon loses no number, and the next one ends the
// run.
func TestHistory(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			w.Header().Set("Content-Disposition", `attachment; filename="report.txt"`)
		}
		_, _ = fmt.Fprintf(w, "<!doctype html><title>Title of %s</title>", r.URL.Path)
	}))
	t.Cleanup(site.Close)
	s := begin(t, d, obj{})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/one?token=abc")
	daemon.Eventually(t, grace, "the navigation's event", func() bool {
		return slices.Contains(historyOf(t, d, s.ID)[0].types(), "navigated")
	})
	w.eval(page, `setTimeout(() => alert("hello")), 0`)
	daemon.Eventually(t, grace, "the dialog's event", func() bool {
		return slices.Contains(historyOf(t, d, s.ID)[0].types(), "dialog")
	})
	first, _ := follow(t, d, s.ID, "", 2)
	w.call(page, "Page.handleJavaScriptDialog", obj{"accept": true}, nil)
	w.eval(page, `location = "/file", 0`)
	daemon.Eventually(t, grace, "the download's event", func() bool {
		last := historyOf(t, d, s.ID)[0].events
		return last[len(last)-1].Data["state"] == "completed"
	})
	w.post(page, "Page.crash", nil)
	daemon.Eventually(t, grace, "the crash's event", func() bool {
		return slices.Contains(historyOf(t, d, s.ID)[0].types(), "page_crashed")
	})
	finish(t, d, s.ID, toFiles)
	run := historyOf(t, d, s.ID)[0]
	want := []string{"started", "client_connected", "navigated", "dialog", "download", "download", "page_crashed", "client_disconnected", "saved", "ended"}
	if got := run.types(); !slices.Equal(got, want) || run.Status != "completed" {
		t.Fatalf("the run is %s, with\n %q\nwant\n %q", run.Status, got, want)
	}
	if data := run.events[2].Data; data["url"] != site.URL+"/one?token=***" || data["title"] != "Title of /one" {
		t.Errorf("the navigation is %v", data)
	}

	// A client that reconnects gets each event once.
	rest, names := follow(t, d, s.ID, "1-2", -1)
	got := append(first, rest...)
	for i, kind := range want {
		if line := fmt.Sprintf("1-%d %s", i+1, kind); i >= len(got) || got[i] != line {
			t.Fatalf("the stream has\n %q\nand not %q", got, line)
		}
	}
	if names[len(names)-1] != "done" || len(got) != len(want) {
		t.Errorf("the stream ends with %s after %d events", names[len(names)-1], len(got))
	}

	// A restored session has its own events. The daemon is killed while its pages cause
	// events without end.
	again := begin(t, d, obj{"restore_from_session_id": s.ID, "engine": browser.EngineShell})
	w = dial(t, again.CDP)
	page = w.attach(w.tab(site.URL + "/one"))
	w.call(page, "Runtime.enable", nil, nil)
	w.eval(page, `setInterval(() => console.error("noise"), 1), 0`)
	daemon.Eventually(t, grace, "events", func() bool { return len(historyOf(t, d, again.ID)[0].events) > 100 })
	before := historyOf(t, d, again.ID)[0].events
	d.Kill(t)
	d.Restart(t)
	left := historyOf(t, d, again.ID)
	after := left[0].events
	if len(left) != 1 || left[0].Status != "failed" || left[0].Cause != "the daemon was killed" || len(after) <= len(before) {
		t.Fatalf("%d runs, the first %s (%s) with %d events, %d before", len(left), left[0].Status, left[0].Cause, len(after), len(before))
	}
	for i, e := range before {
		if after[i].Type != e.Type {
			t.Errorf("event %d was %s and is %s", i+1, e.Type, after[i].Type)
		}
	}
	if got := left[0].types(); got[0] != "restored" || !slices.Equal(got[len(got)-2:], []string{"saved", "ended"}) {
		t.Errorf("the run begins with %s and ends with %s", got[0], got[len(got)-2:])
	}
	if end, names := follow(t, d, again.ID, fmt.Sprintf("1-%d", len(after)-1), -1); len(end) != 1 || names[0] != "error" {
		t.Errorf("the stream ends with %q", end)
	}
}
