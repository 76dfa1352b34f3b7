package agent

import (
	"context"
	"encoding/json"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot"
)

// NotesToSave returns the notes for a session's snapshot: the newest note with its ID,
// else those that it was restored with; nil if there are none.
func NotesToSave(ctx context.Context, store NoteReader, rec profiles.Session) (*restore.Notes, error) {
	stored, err := store.Note(ctx, rec.UserID, rec.ID)
	if fault.Is(err, fault.NoteNotFound) {
		return RestoredNotes(rec)
	}
	if err != nil {
		return nil, err
	}
	n, err := noteOf(stored)
	return &restore.Notes{SessionID: n.SessionID, StoredAt: n.UpdatedAt, Data: profiles.JSON(n.Data)}, err
}

// RestoredNotes returns the notes that a session was restored with, from its restore
// report; nil: none.
func RestoredNotes(rec profiles.Session) (*restore.Notes, error) {
	var report struct {
		Notes *restore.Notes `json:"notes"`
	}
	if rec.Restored != nil {
		if err := json.Unmarshal(rec.Restored, &report); err != nil {
			return nil, unreadableNote(err)
		}
	}
	return report.Notes, unreadableNote(checkNotes(report.Notes))
}

// checkNotes converts notes to the format of answers. If they have another format, it
// returns an error.
func checkNotes(n *restore.Notes) error {
	if n == nil {
		return nil
	}
	data, err := noteData(n.Data)
	n.Data = profiles.JSON(data)
	return err
}

// appData is what a snapshot stores of agents' notes.
type appData struct {
	Notes *restore.Notes `json:"notes"`
}

// AppData returns a snapshot's appData for notes; nil if there are none.
func AppData(n *restore.Notes) json.RawMessage {
	if n == nil {
		return nil
	}
	return profiles.JSON(appData{n})
}

// NotesIn returns the notes in a snapshot; nil: none. Notes in another format are
// archive_damaged.
func NotesIn(saved snapshot.Snapshot) (*restore.Notes, error) {
	var kept appData
	if saved.AppData == nil {
		return nil, nil
	}
	err := json.Unmarshal(saved.AppData, &kept)
	if err == nil {
		err = checkNotes(kept.Notes)
	}
	return kept.Notes, fault.Wrap(err, fault.ArchiveDamaged, "session.restore", "snapshot "+saved.ID+": its appData has the wrong format")
}
