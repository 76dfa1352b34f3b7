package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/restore"
)

// NoteWriter reads and writes notes; see [profiles.NoteStore].
type NoteWriter interface {
	NoteReader
	PutNote(ctx context.Context, n profiles.Note, change func(was json.RawMessage) (json.RawMessage, error)) (profiles.Note, error)
}

// TakeBack makes the notes that came with a snapshot the newest version of the notes under
// a session's ID; nil: there were none. A session without notes of its own has those that
// it was restored with anyway.
func TakeBack(ctx context.Context, store NoteWriter, rec profiles.Session, notes *restore.Notes, now time.Time) error {
	_, err := store.Note(ctx, rec.UserID, rec.ID)
	if fault.Is(err, fault.NoteNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	data := profiles.JSON(NoteData{}.merge(NoteData{}))
	if notes != nil {
		data = notes.Data
	}
	_, err = store.PutNote(ctx, profiles.Note{UserID: rec.UserID, SessionID: rec.ID, UpdatedAt: now.UTC()},
		func(json.RawMessage) (json.RawMessage, error) { return data, nil })
	return err
}
