package session

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
)

func (r *rig) note(c access.Caller, id string, d agent.NoteData) agent.Note {
	r.t.Helper()
	n, err := r.PutNote(r.t.Context(), c, agent.NoteChange{SessionID: id, Event: "checkpoint", NoteData: d})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// A session's notes are part of every kind of save and of every kind of restore. The
// session's first own note builds on them.
func TestNotesAreSavedAndRestored(t *testing.T) {
	for name, x := range map[string]struct {
		save   request.End
		engine string
		path   string
	}{
		"files":  {filesystem, browser.EngineChrome, restore.PathCold},
		"memory": {memory, browser.EngineChrome, restore.PathParked},
		"shell":  {filesystem, browser.EngineShell, restore.PathCold},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			create := func(from string) answer.Info {
				t.Helper()
				return r.create(admin, func(c *request.Create) { c.FromSession, c.UserID, c.Engine = from, "alice", x.engine })
			}
			id := create("").ID
			_, err := r.SessionNotes(t.Context(), alice, id)
			wantCode(t, err, fault.NoteNotFound)
			r.note(admin, id, agent.NoteData{KeyDecisions: []string{"one"}, OpenTasks: []string{"task"}}) // alice's, because it is her session
			r.wantHistory(id, "1 running (): started note")
			r.end(alice, id, x.save)

			has := func(id, of string, decisions ...string) {
				t.Helper()
				n, err := r.SessionNotes(t.Context(), alice, id)
				if diff := cmp.Diff(decisions, n.Data.KeyDecisions); diff != "" || err != nil || n.SessionID != of || len(n.Data.OpenTasks) != 1 {
					t.Errorf("%+v, %v (-want +got):\n%s", n, err, diff)
				}
			}
			info := create(id)
			second := info.ID
			if n := info.Restored.Notes; info.Restored.Path != x.path || n == nil || n.SessionID != id || n.StoredAt.IsZero() || len(dataOf(t, n).OpenTasks) != 1 {
				t.Fatalf("restored %+v with %+v", info.Restored, n)
			}
			has(second, id, "one")
			r.end(alice, second, x.save) // it has no own notes
			third := create(second).ID
			has(third, id, "one")
			r.note(alice, third, agent.NoteData{KeyDecisions: []string{"two", "one"}})
			has(third, third, "one", "two")
			r.end(alice, third, x.save)
			fourth := create(third).ID
			has(fourth, third, "one", "two")

			// Also after a failed save that cost the session its Chrome.
			if x.save.Mode == save.Filesystem {
				r.catalogue.fails(errBroken, "Commit")
				_, err = r.End(t.Context(), alice, fourth, x.save)
				wantCode(t, err, fault.SaveFailed)
				r.catalogue.works()
				has(fourth, third, "one", "two")
			}
			_, err = r.SessionNotes(t.Context(), bob, fourth)
			wantCode(t, err, fault.SessionNotFound)
		})
	}
}

// A standby has the notes too, and so has a rescue.
func TestNotesOfStandbysAndRescues(t *testing.T) {
	r := newStandbyRig(t, nil)
	id := r.create(alice, nil).ID
	r.note(alice, id, agent.NoteData{KeyDecisions: []string{"one"}})
	r.end(alice, id, asDefault)
	r.requestStandbys(alice, 1)
	r.awaitStandbys(1)
	standby := r.create(alice, fromAlice)
	if n := standby.Restored.Notes; standby.Restored.Path != restore.PathStandby || n == nil || n.SessionID != id {
		t.Errorf("%s restored %+v", standby.Restored.Path, n)
	}
	r.end(alice, standby.ID, none)
	r.requestStandbys(alice, 0)
	r.awaitStandbys(0)

	second := r.create(alice, func(c *request.Create) { c.FromSession = id }).ID
	r.kill()
	r.Service = r.daemon(nil)
	if err := recovered(t.Context(), r.Service); err != nil {
		t.Fatal(err)
	}
	if n := r.create(alice, func(c *request.Create) { c.FromSession = second }).Restored.Notes; n == nil || n.SessionID != id {
		t.Errorf("rescued with %+v", n)
	}
}

// After a restart, the report has the session's newest note, not the one it was restored
// with.
func TestNotesOfARestart(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, onCrash).ID
	for _, decision := range []string{"one", "two"} {
		r.note(alice, id, agent.NoteData{KeyDecisions: []string{decision}})
		r.crashChrome(id)
		info, err := r.Get(t.Context(), alice, id)
		if err != nil {
			t.Fatal(err)
		}
		n := info.Restored.Notes
		if n == nil || n.SessionID != id {
			t.Fatalf("restarted with %+v", n)
		}
		if all := dataOf(t, n).KeyDecisions; all[len(all)-1] != decision {
			t.Errorf("restarted with %+v, want %s", n, decision)
		}
	}
}

// A new note makes a checkpoint differ even if nothing else has changed.
func TestNoteIsAChange(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	for n, unchanged := range []bool{false, true, false, true} {
		if n == 2 {
			r.note(alice, id, agent.NoteData{OpenTasks: []string{fmt.Sprint(n)}})
		}
		a, err := r.Checkpoint(t.Context(), alice, id, request.Checkpoint{})
		if err != nil || a.Unchanged != unchanged {
			t.Errorf("checkpoint %d: %+v, %v", n, a, err)
		}
	}
	if got := r.status(id); got != profiles.StatusReady {
		t.Errorf("status %s", got)
	}
}

// dataOf returns the notes of agents in a restore report.
func dataOf(t *testing.T, n *restore.Notes) (data agent.NoteData) {
	t.Helper()
	if err := json.Unmarshal(n.Data, &data); err != nil {
		t.Fatal(err)
	}
	return data
}
