package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Notes is the store of agents' working states. It implements [profiles.NoteStore].
type Notes struct{ db *handle }

var _ profiles.NoteStore = (*Notes)(nil)

const noteColumns = "user_id, session_id, version, event, data, created_at, updated_at"

func scanNote(r row) (profiles.Note, error) {
	var n profiles.Note
	var user, data []byte
	err := r.Scan(&user, &n.SessionID, &n.Version, &n.Event, &data, moment{&n.CreatedAt}, moment{&n.UpdatedAt})
	n.UserID, n.Data = string(user), data
	return n, err
}

func newestNote(ctx context.Context, q querier, userID, sessionID string) (profiles.Note, error) {
	return scanNote(q.QueryRowContext(ctx, "SELECT "+noteColumns+
		" FROM notes WHERE user_id = ? AND session_id = ? ORDER BY version DESC LIMIT 1", []byte(userID), sessionID))
}

// PutNote implements [profiles.NoteStore].
func (st *Notes) PutNote(ctx context.Context, given profiles.Note, change func(was json.RawMessage) (json.RawMessage, error)) (n profiles.Note, err error) {
	const op = "profiles.put_note"
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		n = given
		was, err := newestNote(ctx, tx, n.UserID, n.SessionID)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		n.Version, n.CreatedAt = was.Version+1, was.CreatedAt
		if n.Version == 1 {
			n.CreatedAt = n.UpdatedAt
		}
		n.UpdatedAt = notBefore(n.CreatedAt, n.UpdatedAt)
		if n.Data, err = change(was.Data); err != nil {
			return callerError{err}
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO users (user_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
			[]byte(n.UserID), stamp(n.UpdatedAt))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO notes ("+noteColumns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
			[]byte(n.UserID), n.SessionID, n.Version, n.Event, []byte(n.Data), stamp(n.CreatedAt), stamp(n.UpdatedAt))
		return err
	})
	if err != nil {
		return profiles.Note{}, err
	}
	n.CreatedAt, n.UpdatedAt = n.CreatedAt.UTC(), n.UpdatedAt.UTC()
	return n, nil
}

// Note implements [profiles.NoteStore].
func (st *Notes) Note(ctx context.Context, userID, sessionID string) (profiles.Note, error) {
	n, err := newestNote(ctx, st.db.reader, userID, sessionID)
	return n, orMissing(err, fault.NoteNotFound, "profiles.note")
}

// LatestNote implements [profiles.NoteStore].
func (st *Notes) LatestNote(ctx context.Context, userID string) (profiles.Note, error) {
	n, err := scanNote(st.db.reader.QueryRowContext(ctx, "SELECT "+noteColumns+
		" FROM notes WHERE user_id = ? ORDER BY sequence DESC LIMIT 1", []byte(userID)))
	return n, orMissing(err, fault.NoteNotFound, "profiles.latest_note")
}

// NoteHistory implements [profiles.NoteStore].
func (st *Notes) NoteHistory(ctx context.Context, userID, sessionID string, limit int, before int64) ([]profiles.Note, error) {
	if before <= 0 {
		before = limited(0)
	}
	all, err := collect(ctx, st.db.reader, scanNote, "SELECT "+noteColumns+
		" FROM notes WHERE user_id = ? AND session_id = ? AND version < ? ORDER BY version DESC LIMIT ?",
		[]byte(userID), sessionID, before, limited(limit))
	return all, failure("profiles.note_history", err)
}
