package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
)

// fakeAgents has the messages and notes of agents.
type fakeAgents struct {
	*failing
	said  []agent.MessageRequest
	notes []agent.NoteChange
}

func (f *fakeAgents) Cancel(context.Context, access.Caller, string) (bool, error) {
	return true, f.failure()
}

func (f *fakeAgents) Send(_ context.Context, _ access.Caller, _ string, m agent.MessageRequest) (agent.Sent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, m)
	return agent.Sent{Message: agent.Message{ID: 7}, HasAgent: m.Type != ""}, f.err
}

func (f *fakeAgents) Messages(_ context.Context, _ access.Caller, _ string, after int64, secrets bool) (agent.Conversation, error) {
	return agent.Conversation{Messages: []agent.Message{
		{ID: after + 1, Type: "QUESTION", Role: "assistant", Content: fmt.Sprint("whole: ", secrets), At: born.UTC(), Metadata: []byte(`{"start_url":"https://a.example/"}`)},
		{ID: after + 2, Type: "TOOL", Role: "tool", Content: "", Name: "click", Arguments: []byte(`{"x":1}`), Result: []byte(`[true]`), At: born.UTC(), Metadata: []byte(`{}`)},
		{ID: after + 3, Type: "DONE", Role: "assistant", Content: json.RawMessage(`{"price":3}`), At: born.UTC(), Metadata: []byte(`{}`)}},
		More: true, HasAgent: true, Status: agent.Status{Status: "waiting_for_input"}}, f.failure()
}

func note(id string) agent.Note {
	return agent.Note{SessionID: id, Event: "checkpoint", CreatedAt: born, UpdatedAt: born, Data: agent.NoteData{
		FilesModified: []string{}, CommandsRun: []string{}, KeyDecisions: []string{}, OpenTasks: []string{"sleep"},
		Extra: map[string]json.RawMessage{"mood": json.RawMessage(`"calm"`)}}}
}

func (f *fakeAgents) PutNote(_ context.Context, _ access.Caller, n agent.NoteChange) (agent.Note, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, n)
	return note(n.SessionID), f.err
}

func (f *fakeAgents) Note(_ context.Context, _ access.Caller, id string) (agent.Note, error) {
	return note(id), f.failure()
}

func (f *fakeAgents) LatestNote(context.Context, access.Caller, string) (agent.Note, error) {
	return note("any"), f.failure()
}

func (f *fakeAgents) SessionNotes(_ context.Context, _ access.Caller, id string) (agent.Note, error) {
	return note(id), f.failure()
}
