package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
)

// Notes stores the notes of agents: the state of their work.
type Notes interface {
	PutNote(ctx context.Context, c access.Caller, n agent.NoteChange) (agent.Note, error)
	Note(ctx context.Context, c access.Caller, sessionID string) (agent.Note, error)
	// LatestNote returns the newest note of userID; "" means the user of the key.
	LatestNote(ctx context.Context, c access.Caller, userID string) (agent.Note, error)
	// SessionNotes returns the notes of a browser session: its own, else those it was
	// restored with.
	SessionNotes(ctx context.Context, c access.Caller, id string) (agent.Note, error)
}

var _ Notes = (*agent.Notes)(nil)

// noteHandler stores and serves the notes of agents.
type noteHandler struct {
	notes       Notes
	bodies      *bodyDecoder
	idempotency *idempotency
}

// noteBody is a note, with the field names of the session-memory API.
type noteBody struct {
	SessionID     string                     `json:"session_id"`
	ProjectPath   *string                    `json:"project_path"`
	FilesModified []string                   `json:"files_modified"`
	CommandsRun   []string                   `json:"commands_run"`
	KeyDecisions  []string                   `json:"key_decisions"`
	OpenTasks     []string                   `json:"open_tasks"`
	Event         string                     `json:"event"`
	Replace       bool                       `json:"replace"`
	Extra         map[string]json.RawMessage `json:"extra"`
}

// keepUnknown implements unknownKeeper: an agent's memory is not refused for a name that
// Stasis does not know.
func (b *noteBody) keepUnknown(name string, value json.RawMessage) {
	if b.Extra == nil {
		b.Extra = map[string]json.RawMessage{}
	}
	b.Extra[name] = value
}

// reservedNote cannot be a session ID, because its path is a route.
const reservedNote = "latest"

func (b noteBody) check() error {
	switch b.SessionID {
	case "":
		return invalid("session_id", "is required")
	case reservedNote:
		return invalid("session_id", "must not be %s, which names the note that was stored last", reservedNote)
	}
	return firstOf(isUserID("session_id", b.SessionID), oneOf("event", b.Event, agent.NoteEvents...))
}

func (b noteBody) change() agent.NoteChange {
	return agent.NoteChange{SessionID: b.SessionID, Event: b.Event, Replace: b.Replace, NoteData: agent.NoteData{ProjectPath: b.ProjectPath,
		FilesModified: b.FilesModified, CommandsRun: b.CommandsRun, KeyDecisions: b.KeyDecisions, OpenTasks: b.OpenTasks, Extra: b.Extra}}
}

// noteAnswer is a note on the wire.
type noteAnswer struct {
	SessionID string    `json:"session_id"`
	Data      noteData  `json:"session_data"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

type noteData struct {
	agent.NoteData
	Event *string `json:"event"`
}

func noteAnswerOf(n agent.Note) noteAnswer {
	return noteAnswer{SessionID: n.SessionID, CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt, Data: noteData{n.Data, answer.OrNull(n.Event)}}
}

func (h *noteHandler) put(c *call) error {
	var body noteBody
	if _, err := h.bodies.decode(c, &body); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	return h.idempotency.once(c, h.idempotency.hashOf(body), creation{
		make: func() (any, func() error, error) {
			n, err := h.notes.PutNote(c.Request().Context(), c.caller, body.change())
			if err != nil {
				return nil, nil, err
			}
			answer := noteAnswerOf(n)
			return answer, func() error { return c.JSON(http.StatusOK, answer) }, nil
		},
		replay: func(data []byte) error {
			var answer noteAnswer
			if err := json.Unmarshal(data, &answer); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			return c.JSON(http.StatusOK, answer)
		},
	})
}

// answerNote answers with a note, or with err.
func answerNote(c *call, n agent.Note, err error) error {
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, noteAnswerOf(n))
}

func (h *noteHandler) get(c *call) error {
	id, err := c.param("note_id")
	if err != nil {
		return err
	}
	if isUserID("session_id", id) != nil {
		return fault.New(fault.NoteNotFound, "api.path", "")
	}
	n, err := h.notes.Note(c.Request().Context(), c.caller, id)
	return answerNote(c, n, err)
}

func (h *noteHandler) latest(c *call) error {
	var q struct {
		UserID string `json:"user_id"`
	}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := isUserID("user_id", q.UserID); err != nil {
		return err
	}
	n, err := h.notes.LatestNote(c.Request().Context(), c.caller, q.UserID)
	return answerNote(c, n, err)
}

func (h *noteHandler) ofSession(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	n, err := h.notes.SessionNotes(c.Request().Context(), c.caller, id)
	return answerNote(c, n, err)
}
