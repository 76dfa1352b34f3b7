package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/session/events"
)

func entry(run, sequence int64, kind, data string) events.StreamEvent {
	return events.StreamEvent{Event: events.Event{RunID: fmt.Sprint("run-", run), Sequence: sequence, Type: kind, At: born.UTC(), Data: []byte(data)},
		At: events.Position{Run: run, Sequence: sequence}}
}

// entries has every event name of a stream. The done of the first run is old.
func entries() []events.StreamEvent {
	all := []events.StreamEvent{
		entry(1, 1, "started", `{}`), entry(1, 2, "ended", `{"status":"completed"}`),
		entry(2, 4, "restored", `{}`), entry(2, 5, "navigated", `{"url":"https://a.example/"}`), entry(2, 6, "console", `{}`),
		entry(2, 7, "message", `{"type":"THOUGHT"}`), entry(2, 8, "message", `{"type":"USER"}`), entry(2, 9, "message", `{"type":"TOOL"}`),
		entry(2, 10, "paused", `{}`), entry(2, 11, "resumed", `{}`), entry(2, 12, "ended", `{"status":"failed"}`), entry(2, 13, "never", `{}`),
	}
	all[0].Old, all[1].Old = true, true
	all[2].Gaps = []events.Gap{{RunID: "run-2", First: 4}}
	return all
}

// lines reads a stream to its end, or n lines of it.
func lines(t *testing.T, body io.Reader, n int) (got []string) {
	t.Helper()
	in := bufio.NewScanner(body)
	for len(got) != n && in.Scan() {
		if text := in.Text(); text != "" && !strings.HasPrefix(text, "data:") {
			got = append(got, text)
		}
	}
	return got
}

// A stream has an ID and a name for each event. It ends with the first done or error that
// is not old.
func TestStream(t *testing.T) {
	r := newRig(t, nil)
	answer, body := r.do(t, "GET", "/v1/sessions/live-1/events", "")
	if answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %d %s", answer.StatusCode, answer.Header)
	}
	want := []string{"id: 1-1", "event: step", "id: 1-2", "event: done", "event: log", "id: 2-4", "event: step", "id: 2-5", "event: step",
		"id: 2-6", "event: log", "id: 2-7", "event: thought", "id: 2-8", "event: user", "id: 2-9", "event: tool", "id: 2-10", "event: paused",
		"id: 2-11", "event: resumed", "id: 2-12", "event: error"}
	if diff := cmp.Diff(want, lines(t, strings.NewReader(body), -1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if whole := `data: {"run_id":"run-2","sequence":5,"type":"navigated","timestamp":"2026-11-20T18:00:00.000Z","data":{"url":"https://a.example/"}}`; !strings.Contains(body, whole) {
		t.Errorf("%s\nis not in\n%s", whole, body)
	}
	if !strings.Contains(body, `{"first_available_sequence":4,"run_id":"run-2","type":"retention_gap"}`) {
		t.Errorf("no gap is reported in\n%s", body)
	}
	<-r.feed.closed
}

// A client gets the events that it asked for, from where it stopped.
func TestStreamFilters(t *testing.T) {
	r := newRig(t, nil)
	_, body := r.do(t, "GET", "/v1/sessions/live-1/events?event_types=paused,%20done&include_history=false&sanitize=false", "")
	if diff := cmp.Diff([]string{"id: 1-2", "event: done", "id: 2-10", "event: paused", "id: 2-12"}, lines(t, strings.NewReader(body), -1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for header, want := range map[string]*events.Position{"": nil, "2-17": {Run: 2, Sequence: 17}} {
		if status, _ := r.with(t, "Last-Event-ID", header, "/v1/sessions/live-1/events"); status != 200 {
			t.Errorf("%q: got %d", header, status)
		}
		if diff := cmp.Diff(events.FollowRequest{After: want}, r.follows[len(r.follows)-1]); diff != "" {
			t.Errorf("%q: -want +got:\n%s", header, diff)
		}
	}
	if diff := cmp.Diff(events.FollowRequest{Fresh: true, Secrets: true}, r.follows[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	asked := len(r.follows)
	for _, header := range []string{"17", "x-1", "0-1", "1--1", "1-2-3", "1-99999999999999999999"} {
		status, body := r.with(t, "Last-Event-ID", header, "/v1/sessions/live-1/events")
		if status != 422 || !strings.Contains(body, "Last-Event-ID") {
			t.Errorf("%q: got %d %s", header, status, body)
		}
	}
	if len(r.follows) > asked {
		t.Error("a bad ID reached the service")
	}
}

// A feed that ends without a wanted event is answered like one without events: 204 to a
// client that reconnects, else 200. A client that did not want the last event gets its ID,
// so that it does not end there again each time it reconnects.
func TestStreamWithoutWantedEvents(t *testing.T) {
	r := newRig(t, nil)
	whole := r.entries
	for _, test := range []struct {
		entries []events.StreamEvent
		last    string // Last-Event-ID
		status  int
		want    []string
	}{
		{nil, "", 200, nil},
		{nil, "1-1", 204, nil},
		{whole[:2], "", 200, []string{"id: 1-2"}}, // older than the stream
		{whole[:2], "1-1", 204, nil},
		{whole[3:7], "", 200, []string{"id: 2-8"}}, // the session ends without an event
		{whole[3:7], "2-4", 204, nil},
		{whole[8:12], "", 200, []string{"id: 2-12"}}, // error
	} {
		r.entries = test.entries
		status, body := r.with(t, "Last-Event-ID", test.last, "/v1/sessions/live-1/events?event_types=question")
		if diff := cmp.Diff(test.want, lines(t, strings.NewReader(body), -1)); status != test.status || diff != "" {
			t.Errorf("got %d, -want +got:\n%s", status, diff)
		}
	}
}

// with sends a GET with a header.
func (r *rig) with(t *testing.T, name, value, path string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+goodKey)
	if value != "" {
		request.Header.Set(name, value)
	}
	answer, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// A stream without events sends heartbeats. It ends when the client disconnects or the
// daemon stops.
func TestStreamHeartbeats(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Heartbeat = time.Millisecond })
	r.entries, r.feedWaits = nil, true
	for _, end := range []string{"reader", "daemon"} {
		ctx, leave := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, "GET", r.url+"/v1/sessions/live-1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+goodKey)
		answer, err := r.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := lines(t, answer.Body, 3); len(got) != 3 || got[0] != "event: heartbeat" {
			t.Errorf("got %q", got)
		}
		if end == "daemon" {
			r.server.close()
		} else {
			leave()
		}
		<-r.feed.closed
		_ = answer.Body.Close()
		leave()
	}
}
