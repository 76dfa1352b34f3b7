package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/snapshot"
)

// New list items are added, tasks and path are replaced, and what a change leaves out
// stays. A note belongs to its user, and its total size is limited.
func TestNotes(t *testing.T) {
	notes := NewNotes(sessions(), database(t).Notes, clock())
	put := func(c access.Caller, id string, d NoteData) Note {
		t.Helper()
		n, err := notes.PutNote(t.Context(), c, NoteChange{SessionID: id, Event: "checkpoint", NoteData: d})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	path := func(s string) *string { return &s }
	first := put(alice, "Any ID", NoteData{ProjectPath: path("/a"), Extra: extra("mood", `1`), FilesModified: []string{"b", "a", "b"}, CommandsRun: []string{"x"}, OpenTasks: []string{"1", "2"}})
	again := put(alice, "Any ID", NoteData{FilesModified: []string{"c", "a"}, KeyDecisions: []string{"k"}, Extra: extra("plan", `{"b":1,"a":[]}`)})
	want := NoteData{ProjectPath: path("/a"), FilesModified: []string{"b", "a", "c"}, CommandsRun: []string{"x"}, KeyDecisions: []string{"k"}, OpenTasks: []string{"1", "2"},
		Extra: map[string]json.RawMessage{"mood": json.RawMessage(`1`), "plan": json.RawMessage(`{"b":1,"a":[]}`)}}
	if diff := cmp.Diff(want, again.Data); diff != "" || !again.CreatedAt.Equal(first.CreatedAt) || !again.UpdatedAt.After(first.UpdatedAt) {
		t.Errorf("%v %v (-want +got):\n%s", first, again, diff)
	}
	want.OpenTasks, want.ProjectPath = []string{}, path("/b")
	put(alice, "Any ID", NoteData{OpenTasks: []string{}, ProjectPath: path("/b")})
	put(bob, "Any ID", NoteData{KeyDecisions: []string{"his"}})
	for _, get := range []func() (Note, error){
		func() (Note, error) { return notes.Note(t.Context(), alice, "Any ID") },
		func() (Note, error) { return notes.LatestNote(t.Context(), alice, "") },
		func() (Note, error) { return notes.LatestNote(t.Context(), admin, "alice") },
	} {
		got, err := get()
		if diff := cmp.Diff(want, got.Data); diff != "" || err != nil || got.Event != "checkpoint" {
			t.Errorf("%+v, %v (-want +got):\n%s", got, err, diff)
		}
	}
	_, err := notes.LatestNote(t.Context(), alice, "bob")
	wantCode(t, err, fault.NoteNotFound)
	_, err = notes.Note(t.Context(), alice, "other")
	wantCode(t, err, fault.NoteNotFound)
	_, err = notes.Note(t.Context(), access.Caller{UserID: "alice"}, "Any ID")
	wantCode(t, err, fault.Forbidden)
	_, err = notes.PutNote(t.Context(), alice, NoteChange{SessionID: "Any ID", NoteData: NoteData{OpenTasks: []string{strings.Repeat("x", MaxNote)}}})
	wantCode(t, err, fault.TooLarge)
	if got, _ := notes.LatestNote(t.Context(), alice, ""); len(got.Data.OpenTasks) > 0 {
		t.Error("a note that was too large was stored")
	}
}

// A note with Replace is the whole note. Nothing of the stored one stays but its age.
func TestNoteReplaces(t *testing.T) {
	notes := NewNotes(sessions(), database(t).Notes, clock())
	was, err := notes.PutNote(t.Context(), alice, NoteChange{SessionID: "n", Event: "checkpoint", NoteData: NoteData{
		FilesModified: []string{"a"}, CommandsRun: []string{"b"}, KeyDecisions: []string{"c"}, OpenTasks: []string{"d"}, Extra: extra("mood", `1`)}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = notes.PutNote(t.Context(), alice, NoteChange{SessionID: "n", Replace: true, NoteData: NoteData{KeyDecisions: []string{"only"}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := notes.Note(t.Context(), alice, "n")
	none := []string{}
	want := Note{SessionID: "n", CreatedAt: was.CreatedAt, UpdatedAt: got.UpdatedAt, Data: NoteData{
		FilesModified: none, CommandsRun: none, KeyDecisions: []string{"only"}, OpenTasks: none, Extra: map[string]json.RawMessage{}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Notes of earlier versions have "" for an unknown path and no extra fields. All callers
// get the same form.
func TestNoteOfAnEarlierVersion(t *testing.T) {
	saved := snapshot.Snapshot{AppData: json.RawMessage(`{"notes":{"session_id":"s","stored_at":"2026-11-22T10:00:00Z","data":{"project_path":"","files_modified":["a"]}}}`)}
	notes, err := NotesIn(saved)
	const want = `{"project_path":null,"files_modified":["a"],"commands_run":[],"key_decisions":[],"open_tasks":[],"extra":{}}`
	if err != nil || string(notes.Data) != want {
		t.Errorf("%s, %v; want %s", notes.Data, err, want)
	}
}

func extra(name, value string) map[string]json.RawMessage {
	return map[string]json.RawMessage{name: json.RawMessage(value)}
}
