package profiles

import (
	"context"
	"encoding/json"
	"time"
)

// Note is an agent's working state, as one store of it left it. A note belongs
// to a user and is named by a session ID, which need not be that of a browser.
type Note struct {
	UserID    string
	SessionID string
	Version   int64           // 1, 2, … of this user's note of that session ID, given by the catalogue
	Event     string          // on what occasion it was stored; "" where nobody said
	Data      json.RawMessage // the whole state, kept byte for byte
	CreatedAt time.Time       // of the first version
	UpdatedAt time.Time       // of this one; by a clock that was set back, CreatedAt
}

// NoteStore keeps agents' working states.
type NoteStore interface {
	// PutNote writes the next version of a note, in one transaction: change gets
	// the data of the version before (nil: there is none) and gives the new. The
	// user is recorded if it was not.
	PutNote(ctx context.Context, n Note, change func(was json.RawMessage) (json.RawMessage, error)) (Note, error)
	// Note is the newest version of a user's note of that session ID; LatestNote
	// the version that the user stored last, of whichever. None is note_not_found.
	Note(ctx context.Context, userID, sessionID string) (Note, error)
	LatestNote(ctx context.Context, userID string) (Note, error)
	// NoteHistory lists the versions of a note, newest first, older than before
	// (not positive: from the newest on).
	NoteHistory(ctx context.Context, userID, sessionID string, limit int, before int64) ([]Note, error)
}
