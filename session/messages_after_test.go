package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
)

// A message that was meant for an ended session, and is stored when that was resumed,
// is told in the run that goes on, and the session knows how the task stands.
func TestMessageMeetsAResume(t *testing.T) {
	r := newRig(t, nil)
	id, _ := r.saved(alice, filesystem)
	r.catalogue.once("AddMessage", func() { r.resumed(alice, id) })
	if _, err := r.Send(t.Context(), alice, id, agent.MessageRequest{Type: "QUESTION", Content: "Which?"}); err != nil {
		t.Fatal(err)
	}
	const first = "1 completed (asked): started saved ended"
	r.records(id, first, "2 running (): restored message")
	if cancelled, err := r.Cancel(t.Context(), alice, id); err != nil || !cancelled {
		t.Errorf("cancelled: %v, %v", cancelled, err)
	}
	if rec, err := r.catalogue.Session(t.Context(), id); err != nil || rec.Execution != profiles.ExecutionFinished {
		t.Errorf("the task is %q, %v", rec.Execution, err)
	}
	r.records(id, first, "2 running (): restored message cancelled")
}

// In a session whose Chrome could not be reopened a message with a type is recorded,
// and no run is there to tell of it, after a resume neither.
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
	if got, talk := r.talk(id, 0, false); cmp.Diff([]string{"ERROR it went away"}, got) != "" || talk.Status.ExecutionStatus != "error" {
		t.Errorf("%q, %+v", got, talk.Status)
	}
	r.resumed(alice, id)
	r.records(id, "1 failed ("+notReopened+"): started save_failed ended", "2 running (): restored")
}
