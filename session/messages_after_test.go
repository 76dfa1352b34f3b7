package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
)

// A message for an ended session may be stored when the session was resumed. It is then
// an event of the new run, and the session has the task's new state.
func TestMessageDuringResume(t *testing.T) {
	r := newRig(t, nil)
	id, _ := r.saved(alice, filesystem)
	r.catalogue.once("AddMessage", func() { r.resumed(alice, id) })
	if _, err := r.Send(t.Context(), alice, id, agent.MessageRequest{Type: "QUESTION", Content: "Which?"}); err != nil {
		t.Fatal(err)
	}
	const first = "1 completed (asked): started saved ended"
	r.wantHistory(id, first, "2 running (): restored message")
	if cancelled, err := r.Cancel(t.Context(), alice, id); err != nil || !cancelled {
		t.Errorf("cancelled: %v, %v", cancelled, err)
	}
	if rec, err := r.catalogue.Session(t.Context(), id); err != nil || rec.Execution != profiles.ExecutionFinished {
		t.Errorf("the task is %q, %v", rec.Execution, err)
	}
	r.wantHistory(id, first, "2 running (): restored message cancelled")
}

// A session whose Chrome could not be reopened records a message with a type. It has no
// run for an event, and a resume does not add one.
func TestMessageWithoutARun(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.catalogue.fails(errBroken, "Commit")
	r.browsers.fails(errBroken, "restored")
	_, err := r.End(t.Context(), alice, id, filesystem)
	wantCode(t, err, fault.SaveFailed)
	r.browsers.works()
	r.catalogue.works()
	if _, err := r.Send(t.Context(), alice, id, agent.MessageRequest{Type: "ERROR", Content: "it went away"}); err != nil {
		t.Fatal(err)
	}
	if got, talk := r.conversation(id, 0, false); cmp.Diff([]string{"ERROR it went away"}, got) != "" || talk.Status.ExecutionStatus != "error" {
		t.Errorf("%q, %+v", got, talk.Status)
	}
	r.resumed(alice, id)
	r.wantHistory(id, "1 failed ("+notReopened+"): started save_failed ended", "2 running (): restored")
}
