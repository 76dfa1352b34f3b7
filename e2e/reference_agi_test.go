package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// sdkEvent is an event of a stream as the session API's SDK gives it to a program.
type sdkEvent struct {
	ID, Event string
	Data      struct {
		Type      string
		Text      *string
		MessageID int64 `json:"message_id"`
		Data      map[string]any
	}
}

// sdkStream streams a session's events as that SDK does, until seen returns false or the
// stream ends. It returns the status of the answer.
func sdkStream(d *daemon.Daemon, id, after string, seen func(sdkEvent) bool) (status int, err error) {
	ctx, leave := context.WithTimeout(context.Background(), grace)
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL+"/v1/sessions/"+id+"/events?sanitize=true&include_history=true", nil)
	if err != nil {
		return 0, err
	}
	request.Header = http.Header{"Authorization": {"Bearer " + daemon.Key}, "Accept": {"text/event-stream"}}
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	in := bufio.NewScanner(answer.Body)
	in.Buffer(nil, 1<<20)
	for e := (sdkEvent{}); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), ": ")
		switch name {
		case "id":
			e.ID = value
		case "event":
			e.Event = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.Data); err != nil {
				return answer.StatusCode, err
			}
			if !seen(e) {
				return answer.StatusCode, nil
			}
			e = sdkEvent{}
		}
	}
	return answer.StatusCode, in.Err()
}

// The calls of the session API's SDK, in the order of its examples and with its bodies:
// send a task, then stream; poll a task to its result; control the session; save,
// restore, and move the default. The SDK itself is in no registry that the tests reach.
func sessionAPI(t *testing.T, d *daemon.Daemon) {
	const user = "session-api"
	var s struct {
		ID          string `json:"session_id"`
		Environment string `json:"environment_id"`
		VNC         string `json:"vnc_url"`
		Agent       string `json:"agent_name"`
		Status      string
	}
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions", obj{"agent_name": "agi-0", "max_steps": 100, "user_id": user}).Into(t, &s)
	if s.Environment == "" || s.VNC == "" || s.Agent != "agi-0" || s.Status != "ready" {
		t.Fatalf("%+v", s)
	}
	path := "/v1/sessions/" + s.ID
	var sent struct {
		Success  bool
		HasAgent bool `json:"has_agent"`
	}
	d.Must(t, http.StatusOK, http.MethodPost, path+"/message", obj{"message": "Find the cheapest phone", "start_url": "about:blank"}).Into(t, &sent)
	if !sent.Success || sent.HasAgent {
		t.Errorf("%+v", sent)
	}
	status := func(want, execution string) {
		t.Helper()
		var now struct {
			Status    string
			Execution string `json:"execution_status"`
		}
		d.Must(t, http.StatusOK, http.MethodGet, path+"/status", nil).Into(t, &now)
		if now.Status != want || now.Execution != execution {
			t.Errorf("%+v, want %s and %s", now, want, execution)
		}
	}
	status("running", "waiting_for_agent")

	// The agent comes later. It finds the task in the stream and works on it.
	task := make(chan sdkEvent, 1)
	agentDone := make(chan error, 1)
	go func() {
		_, err := sdkStream(d, s.ID, "", func(e sdkEvent) bool {
			if e.Event == "user" {
				task <- e
			}
			return e.Event != "done"
		})
		agentDone <- err
	}()
	var got sdkEvent
	select {
	case got = <-task:
	case err := <-agentDone:
		t.Fatalf("the agent's stream ended: %v", err)
	}
	if got.Data.Text == nil || *got.Data.Text != "Find the cheapest phone" || got.Data.MessageID != 1 {
		t.Errorf("the agent got %+v", got)
	}
	status("running", "running")
	say := func(m obj) { t.Helper(); d.Must(t, http.StatusOK, http.MethodPost, path+"/message", m) }
	say(obj{"type": "THOUGHT", "message": "Two shops."})
	say(obj{"type": "TOOL", "name": "click", "arguments": obj{"selector": "#buy"}, "result": obj{"clicked": true}})
	say(obj{"type": "DONE", "message": obj{"price": 199, "shop": "corner"}})
	if err := <-agentDone; err != nil {
		t.Error(err)
	}

	// for await (const event of session.streamEvents()) { if (event.event === 'done') break }
	var names []string
	var last sdkEvent
	code, err := sdkStream(d, s.ID, "", func(e sdkEvent) bool {
		if e.Data.Type == "message" {
			names = append(names, e.Event)
		}
		last = e
		return e.Event != "done"
	})
	if want := []string{"user", "thought", "tool", "done"}; err != nil || code != http.StatusOK || !slices.Equal(names, want) {
		t.Errorf("%d, %v, streamed %q, want %q", code, err, names, want)
	}
	if last.Data.Text == nil || *last.Data.Text != `{"price":199,"shop":"corner"}` || last.Data.MessageID != 4 {
		t.Errorf("done has %+v", last.Data)
	}
	// session.runTask() polls the status, then takes the first DONE or QUESTION.
	status("finished", "finished")
	var talk struct {
		Messages []struct {
			ID         int64
			Type, Role string
			Content    any
		}
		Status   string
		HasAgent bool `json:"has_agent"`
	}
	d.Must(t, http.StatusOK, http.MethodGet, path+"/messages?after_id=0&sanitize=true", nil).Into(t, &talk)
	if len(talk.Messages) != 4 || talk.Messages[3].Type != "DONE" || talk.Messages[0].Role != "user" {
		t.Fatalf("%+v", talk)
	}
	if result, ok := talk.Messages[3].Content.(map[string]any); !ok || result["shop"] != "corner" {
		t.Errorf("the result is %v", talk.Messages[3].Content)
	}
	for _, call := range []string{"pause", "resume", "cancel"} {
		d.Must(t, http.StatusOK, http.MethodPost, path+"/"+call, nil)
	}
	d.Must(t, http.StatusOK, http.MethodPost, path+"/navigate", obj{"url": "about:blank"})
	d.Must(t, http.StatusOK, http.MethodGet, path+"/screenshot", nil)
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/models?filter=cdp", nil)

	// Saved as default, the stream of the ended session answers and ends. Only a client
	// that reconnects gets 204.
	const asDefault = "?save_snapshot_mode=filesystem&save_as_default=true"
	d.Must(t, http.StatusOK, http.MethodDelete, path+asDefault, nil)
	if code, err := sdkStream(d, s.ID, "", func(e sdkEvent) bool { last = e; return true }); err != nil || code != http.StatusOK || last.Event != "done" {
		t.Errorf("the stream of an ended session: %d, %v, last %+v", code, err, last)
	}
	if code, err := sdkStream(d, s.ID, last.ID, func(sdkEvent) bool { return true }); code != http.StatusNoContent || err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("a reconnect after the end: %d, %v", code, err)
	}

	// A session from anywhere else moves the default. One that started from the default
	// keeps a newer one, says so plainly, and can be overwritten.
	restored := create(t, d, body{"agent_name": "agi-0", "max_steps": 100, "restore_from_environment_id": s.Environment})
	from := create(t, d, body{"restore_default_environment_from_user_id": user})
	if a := end(t, d, restored.ID, asDefault[1:]); !a.Success || !a.Default.Moved || a.Default.Version != 2 {
		t.Errorf("from an environment: %+v", a)
	}
	type endAnswer struct {
		Success, Deleted bool
		Code, Message    string
		Snapshot         *struct{ ID string }
		Default          *struct {
			Moved   bool
			Version int64
		}
	}
	var kept endAnswer
	d.Must(t, http.StatusConflict, http.MethodDelete, "/v1/sessions/"+from.ID+asDefault, nil).Into(t, &kept)
	if kept.Success || !kept.Deleted || kept.Code != "version_conflict" || kept.Snapshot == nil || kept.Default.Moved ||
		!strings.Contains(kept.Message, "default_conflict=overwrite") {
		t.Errorf("a default that moved: %+v", kept)
	}
	var overwritten endAnswer
	d.Must(t, http.StatusOK, http.MethodDelete, "/v1/sessions/"+from.ID+asDefault+"&default_conflict=overwrite", nil).Into(t, &overwritten)
	if !overwritten.Success || overwritten.Deleted || !overwritten.Default.Moved || overwritten.Default.Version != 3 {
		t.Errorf("with overwrite: %+v", overwritten)
	}
	if snapshot, version := defaultOf(t, d, user); snapshot != kept.Snapshot.ID || version != 3 {
		t.Errorf("the default is %s, version %d", snapshot, version)
	}
}
