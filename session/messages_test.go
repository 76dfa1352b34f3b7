package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/events"
)

// conversation returns a session's conversation, each message as "type content".
func (r *rig) conversation(id string, after int64, whole bool) (all []string, talk agent.Conversation) {
	r.t.Helper()
	talk, err := r.Messages(r.t.Context(), admin, id, after, whole)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range talk.Messages {
		all = append(all, fmt.Sprintf("%s %s", m.Type, m.Content))
	}
	return all, talk
}

// follow attaches an agent; the returned function detaches it.
func (r *rig) follow(id string) (leave func()) {
	r.t.Helper()
	feed, err := r.Follow(r.t.Context(), alice, id, events.FollowRequest{})
	if err != nil {
		r.t.Fatal(err)
	}
	return feed.Close
}

// A message for an agent waits for one that comes later. A message with a type is always
// recorded, changes the task's state, and is an event of the run. All of it is kept after
// the session's end.
func TestMessages(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	say := func(m agent.MessageRequest, code fault.Code) {
		t.Helper()
		_, err := r.Send(t.Context(), alice, id, m)
		wantCode(t, err, code)
	}
	is := func(status, execution string) {
		t.Helper()
		got, err := r.Status(t.Context(), alice, id)
		rec, _ := r.catalogue.Session(t.Context(), id)
		want := agent.Status{Status: status, SessionStatus: string(rec.Status), ExecutionStatus: execution}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	is("ready", "ready")
	say(agent.MessageRequest{Content: "Go, with token=hunter2", StartURL: "https://a.example/?code=abc"}, "")
	if _, talk := r.conversation(id, 0, false); talk.HasAgent {
		t.Error("a session that nobody follows has an agent")
	}
	is("running", "waiting_for_agent")
	leave := r.follow(id)
	if _, talk := r.conversation(id, 0, false); !talk.HasAgent {
		t.Error("a follower does not count as an agent")
	}
	if diff := cmp.Diff([]string{"https://a.example/?code=abc"}, r.browsers.last().went); diff != "" {
		t.Errorf("start_url (-want +got):\n%s", diff)
	}
	is("running", "running")
	leave()
	if _, talk := r.conversation(id, 0, false); talk.HasAgent {
		t.Error("an agent that has disconnected still counts")
	}
	say(agent.MessageRequest{Type: "QUESTION", Content: "Which?"}, "")
	is("waiting_for_input", "waiting_for_input")
	if _, err := r.Pause(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	is("paused", "waiting_for_input")
	if _, err := r.Resume(t.Context(), alice, id, ""); err != nil {
		t.Fatal(err)
	}
	say(agent.MessageRequest{Type: "ERROR", Content: "no"}, "")
	is("error", "error")
	say(agent.MessageRequest{Type: "LOG", Content: strings.Repeat("x", 20<<10)}, "")
	is("running", "running")

	r.browsers.fails(errBroken, "navigate")
	say(agent.MessageRequest{Type: "USER", Content: "there", StartURL: "https://b.example/"}, fault.Internal)
	r.browsers.works()
	_, err := r.Send(t.Context(), bob, id, agent.MessageRequest{Type: "LOG", Content: "x"})
	wantCode(t, err, fault.SessionNotFound)

	r.end(alice, id, none)
	is("finished", "finished")
	say(agent.MessageRequest{Content: "still there?"}, fault.SessionNotRunning)
	say(agent.MessageRequest{Type: "USER", Content: "x", StartURL: "https://a.example/"}, fault.SessionNotRunning)
	say(agent.MessageRequest{Type: "ERROR", Content: "it went away"}, "")
	is("error", "error")

	long := "LOG " + strings.Repeat("x", 20<<10)
	got, talk := r.conversation(id, 0, false)
	want := []string{"USER Go, with token=***", "QUESTION Which?", "ERROR no", long, "ERROR it went away"}
	if diff := cmp.Diff(want, got); diff != "" || talk.More || talk.HasAgent || talk.Status.Status != "error" {
		t.Errorf("%+v (-want +got):\n%s", talk.Status, diff)
	}
	if got := string(talk.Messages[0].Metadata); got != `{"start_url":"https://a.example/?code=***"}` || string(talk.Messages[1].Metadata) != `{}` {
		t.Errorf("metadata %s, %s", got, talk.Messages[1].Metadata)
	}
	got, talk = r.conversation(id, 0, true)
	if got[0] != "USER Go, with token=hunter2" || !strings.Contains(string(talk.Messages[0].Metadata), "code=abc") {
		t.Errorf("whole: %s, %s", got[0], talk.Messages[0].Metadata)
	}
	if got, _ := r.conversation(id, 3, false); len(got) != 2 || got[0] != long {
		t.Errorf("after 3: %d", len(got))
	}
	_, err = r.Messages(t.Context(), alice, id, 0, true)
	wantCode(t, err, fault.Forbidden)
	_, err = r.Messages(t.Context(), bob, id, 0, false)
	wantCode(t, err, fault.SessionNotFound)
	r.wantHistory(id, "1 completed (asked): started message message paused resumed message message ended")
	runs, _ := r.Runs(t.Context(), alice, id)
	page, err := r.RunEvents(t.Context(), alice, id, runs[0].ID, 6, 1, false)
	if err != nil || len(page.Events) != 1 || len(page.Events[0].Data) < 20<<10 {
		t.Errorf("a long message is truncated in the events: %v", err)
	}
}

// A call of a tool has its name, arguments and result in the conversation and in the
// events, and a DONE may have an object. Secrets in both are masked by their names too.
func TestMessagesOfTools(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	for _, m := range []agent.MessageRequest{
		{Type: "TOOL", Tool: &agent.ToolCall{Name: "fill", Arguments: []byte(`{"selector":"#user","password":"hunter2"}`), Result: []byte(`[true,1]`)}},
		{Type: "DONE", Content: `{"price":3,"token":"hunter2"}`, Object: true},
	} {
		if _, err := r.Send(t.Context(), alice, id, m); err != nil {
			t.Fatal(err)
		}
	}
	asJSON := func(talk agent.Conversation) string {
		for i := range talk.Messages {
			talk.Messages[i].At = time.Time{}
		}
		return string(profiles.JSON(talk.Messages))
	}
	const masked = `[{"id":1,"type":"TOOL","role":"tool","content":"","name":"fill","arguments":{"password":"***","selector":"#user"},"result":[true,1],"timestamp":"0001-01-01T00:00:00Z","metadata":{}},` +
		`{"id":2,"type":"DONE","role":"assistant","content":{"price":3,"token":"***"},"timestamp":"0001-01-01T00:00:00Z","metadata":{}}]`
	_, talk := r.conversation(id, 0, false)
	if got := asJSON(talk); got != masked {
		t.Errorf("got  %s\nwant %s", got, masked)
	}
	_, talk = r.conversation(id, 0, true)
	whole := strings.NewReplacer(`{"password":"***","selector":"#user"}`, `{"selector":"#user","password":"hunter2"}`, `"token":"***"`, `"token":"hunter2"`).Replace(masked)
	if got := asJSON(talk); got != whole {
		t.Errorf("got  %s\nwant %s", got, whole)
	}
	runs, _ := r.Runs(t.Context(), alice, id)
	for secrets, want := range map[bool][]string{
		false: {`{"arguments":{"password":"***","selector":"#user"},"content":"","id":1,"name":"fill","result":[true,1],"role":"tool","type":"TOOL"}`, "",
			`{"content":{"price":3,"token":"***"},"id":2,"role":"assistant","type":"DONE"}`, `{"price":3,"token":"***"}`},
		true: {`{"arguments":{"selector":"#user","password":"hunter2"},"content":"","id":1,"name":"fill","result":[true,1],"role":"tool","type":"TOOL"}`, "",
			`{"content":{"price":3,"token":"hunter2"},"id":2,"role":"assistant","type":"DONE"}`, `{"price":3,"token":"hunter2"}`},
	} {
		page, err := r.RunEvents(t.Context(), admin, id, runs[0].ID, 1, 9, secrets)
		if err != nil || len(page.Events) != 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		var got []string
		for i, e := range page.Events {
			if e.Text == nil || e.MessageID != int64(i+1) {
				t.Fatalf("event %d has no text or another message_id: %+v", i, e)
			}
			got = append(got, string(e.Data), *e.Text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("secrets: %v (-want +got):\n%s", secrets, diff)
		}
	}
}

// A cancel ends a running task and notifies its agent. The session continues.
func TestCancel(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	cancel := func(want bool, execution profiles.Execution, recorded string) {
		t.Helper()
		cancelled, err := r.Cancel(t.Context(), alice, id)
		if err != nil || cancelled != want {
			t.Errorf("cancelled: %v, %v", cancelled, err)
		}
		if rec, _ := r.catalogue.Session(t.Context(), id); rec.Execution != execution {
			t.Errorf("the task is %q, want %q", rec.Execution, execution)
		}
		r.wantHistory(id, "1 running (): started"+recorded)
	}
	cancel(false, "", "")
	leave := r.follow(id)
	cancel(true, profiles.ExecutionFinished, " "+events.Cancelled)
	leave()
	for _, kind := range []string{"QUESTION", "THOUGHT"} {
		if _, err := r.Send(t.Context(), alice, id, agent.MessageRequest{Type: kind, Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	cancel(true, profiles.ExecutionFinished, " cancelled message message cancelled")
	cancel(false, profiles.ExecutionFinished, " cancelled message message cancelled")
	if r.status(id) != profiles.StatusReady {
		t.Errorf("the session is %s", r.status(id))
	}
}
