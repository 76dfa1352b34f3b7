package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/request"
)

// The event of a call is on disk before the call is answered. Otherwise the answer could
// outlive a crash of the daemon, and followers of the session would never receive the
// event.
func TestEventIsOnDiskBeforeAnswer(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	id := r.create(alice, nil).ID
	for _, call := range []struct {
		wantEvent string
		do        func() error
	}{
		{"message", func() error {
			_, err := r.Send(ctx, alice, id, agent.MessageRequest{Type: "LOG", Content: "x"})
			return err
		}},
		{"note", func() error {
			_, err := r.PutNote(ctx, alice, agent.NoteChange{SessionID: id, NoteData: agent.NoteData{OpenTasks: []string{"x"}}})
			return err
		}},
		{"saved", func() error { _, err := r.Checkpoint(ctx, alice, id, request.Checkpoint{}); return err }},
		{"paused", func() error { _, err := r.Pause(ctx, alice, id); return err }},
		{"resumed", func() error { _, err := r.Resume(ctx, alice, id, ""); return err }},
		{"cancelled", func() error { _, err := r.Cancel(ctx, alice, id); return err }},
	} {
		if err := call.do(); err != nil {
			t.Fatalf("%s: %v", call.wantEvent, err)
		}
		// From the catalogue, because the service's own lists wait for pending writes.
		runs, err := r.catalogue.Runs(ctx, id)
		if err != nil || len(runs) != 1 {
			t.Fatalf("%d runs: %v", len(runs), err)
		}
		page, err := r.catalogue.Events(ctx, runs[0].ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		if n := len(page.Events); n > 0 {
			last = page.Events[n-1].Type
		}
		if diff := cmp.Diff(call.wantEvent, last); diff != "" {
			t.Errorf("the last event on disk (-want +got):\n%s", diff)
		}
	}
}
