package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
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
	first := put(alice, "Any ID", NoteData{ProjectPath: "/a", FilesModified: []string{"b", "a", "b"}, CommandsRun: []string{"x"}, OpenTasks: []string{"1", "2"}})
	again := put(alice, "Any ID", NoteData{FilesModified: []string{"c", "a"}, KeyDecisions: []string{"k"}})
	want := NoteData{ProjectPath: "/a", FilesModified: []string{"b", "a", "c"}, CommandsRun: []string{"x"}, KeyDecisions: []string{"k"}, OpenTasks: []string{"1", "2"}}
	if diff := cmp.Diff(want, again.Data); diff != "" || !again.CreatedAt.Equal(first.CreatedAt) || !again.UpdatedAt.After(first.UpdatedAt) {
		t.Errorf("%v %v (-want +got):\n%s", first, again, diff)
	}
	want.OpenTasks, want.ProjectPath = []string{}, "/b"
	put(alice, "Any ID", NoteData{OpenTasks: []string{}, ProjectPath: "/b"})
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
