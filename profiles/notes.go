package profiles

import (
	"context"
	"encoding/json"
	"time"
)

// Note is a version of an agent's working state. It belongs to a user and is named by a
// session ID, which need not be that of a browser session.
type Note struct {
	UserID    string
	SessionID string
	Version   int64           // 1, 2, … for this user and session ID; set by the catalogue
	Event     string          // why it was stored; "" if not given
	Data      json.RawMessage // the whole state, stored byte for byte
	CreatedAt time.Time       // of the first version
	UpdatedAt time.Time       // of this version; CreatedAt if the clock was set back
}

// NoteStore keeps agents' working states.
type NoteStore interface {
	// PutNote writes the next version of a note in one transaction. change receives the
	// previous version's data (nil if there is none) and returns the new data. An unknown
	// user is recorded.
	PutNote(ctx context.Context, n Note, change func(was json.RawMessage) (json.RawMessage, error)) (Note, error)
	// Note returns the newest version of a user's note for that session ID. LatestNote
	// returns the version that the user stored last, of any session ID. If there is none,
	// the error is note_not_found.
	Note(ctx context.Context, userID, sessionID string) (Note, error)
	LatestNote(ctx context.Context, userID string) (Note, error)
	// NoteHistory lists the versions of a note that are older than before, newest first. If
	// before is not positive, the list begins with the newest.
	NoteHistory(ctx context.Context, userID, sessionID string, limit int, before int64) ([]Note, error)
}
