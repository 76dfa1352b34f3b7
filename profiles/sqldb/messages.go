package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stasisd/stasis/profiles"
)

// Messages is the store of the conversations of sessions. It implements
// [profiles.MessageStore].
type Messages struct{ db *handle }

var _ profiles.MessageStore = (*Messages)(nil)

func scanMessage(r row) (profiles.Message, error) {
	var m profiles.Message
	var metadata []byte
	err := r.Scan(&m.SessionID, &m.ID, &m.Type, &m.Content, &metadata, moment{&m.At})
	m.Metadata = metadata
	return m, err
}

const messageColumns = "session_id, message_id, type, content, metadata, at"

// AddMessage implements [profiles.MessageStore].
func (st *Messages) AddMessage(ctx context.Context, m profiles.Message, execution profiles.Execution) (profiles.Message, error) {
	const op = "profiles.add_message"
	err := st.db.writeLocked(ctx, op, func(tx *sql.Tx) error {
		// The lock is held until the end, so that no two messages of a session get one number.
		was, err := st.db.lockedSession(ctx, tx, m.SessionID, op)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(message_id), 0) + 1 FROM messages WHERE session_id = ?", m.SessionID).Scan(&m.ID)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO messages ("+messageColumns+") VALUES (?, ?, ?, ?, ?, ?)",
			m.SessionID, m.ID, m.Type, m.Content, blob(m.Metadata), stamp(m.At))
		if err != nil || execution == "" {
			return err
		}
		if _, err = tx.ExecContext(ctx, "UPDATE sessions SET execution = ? WHERE session_id = ?", execution, m.SessionID); err != nil || m.Notices == nil {
			return err
		}
		return queueNotices(ctx, tx, m.SessionID, func(now profiles.Session) []profiles.Notice { return m.Notices(was, now) }, op)
	})
	if err != nil {
		return profiles.Message{}, err
	}
	m.At, m.Notices = m.At.UTC(), nil
	return m, nil
}

// Messages implements [profiles.MessageStore].
func (st *Messages) Messages(ctx context.Context, sessionID string, after int64, limit int) (page []profiles.Message, more bool, err error) {
	const op = "profiles.messages"
	talk, err := sessionTalk(ctx, st.db.reader, sessionID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, failure(op, err)
	}
	rows, err := st.db.reader.QueryContext(ctx, "SELECT "+messageColumns+
		" FROM messages WHERE session_id = ? AND message_id > ? ORDER BY message_id", sessionID, after)
	if err != nil {
		return nil, false, failure(op, err)
	}
	defer func() { err = failure(op, errors.Join(err, rows.Close())) }()
	for size := 0; rows.Next(); {
		m, err := scanMessage(rows)
		if err != nil {
			return nil, false, err
		}
		if !talk.has(m.ID) { // a resume went back to before it
			continue
		}
		if len(page) > 0 && (int64(len(page)) >= limited(limit) || size >= profiles.MaxMessagePage) {
			return page, true, nil
		}
		page, size = append(page, m), size+len(m.Content)+len(m.Metadata)
	}
	return page, false, rows.Err()
}
