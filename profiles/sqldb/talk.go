package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/stasisd/stasis/profiles"
)

// spans are the messages of a conversation: spans of their IDs, in order. Messages get IDs
// that are never used again, so a conversation that was taken back has gaps. A nil value
// has all messages.
type spans []span

// span has the messages from First to Last. Last 0 means no end.
type span [2]int64

// parseSpans reads spans as a column stores them.
func parseSpans(text string) (spans, error) {
	if text == "" {
		return nil, nil
	}
	s := spans{}
	return s, json.Unmarshal([]byte(text), &s)
}

func (s spans) String() string { return string(profiles.JSON([]span(s))) }

// has reports whether a message belongs to the conversation.
func (s spans) has(id int64) bool {
	return s == nil || slices.ContainsFunc(s, func(p span) bool { return p[0] <= id && (id <= p[1] || p[1] == 0) })
}

// until returns the conversation up to the message last, without an open end.
func (s spans) until(last int64) spans {
	if s == nil {
		s = spans{{1, 0}}
	}
	closed := spans{}
	for _, p := range s {
		if p[1] == 0 || p[1] > last {
			p[1] = last
		}
		if p[0] <= p[1] {
			closed = append(closed, p)
		}
	}
	return closed
}

// covers reports whether the conversation has all messages of a closed one.
func (s spans) covers(other spans) bool {
	if s == nil {
		return true
	}
	return !slices.ContainsFunc(other, func(o span) bool {
		return !slices.ContainsFunc(s, func(p span) bool { return p[0] <= o[0] && (o[1] <= p[1] || p[1] == 0) })
	})
}

// lastMessage returns the ID of a session's last message; 0: it has none.
func lastMessage(ctx context.Context, q querier, sessionID string) (id int64, err error) {
	err = q.QueryRowContext(ctx, "SELECT COALESCE(MAX(message_id), 0) FROM messages WHERE session_id = ?", sessionID).Scan(&id)
	return id, err
}

// sessionTalk returns which messages belong to a session's conversation.
func sessionTalk(ctx context.Context, q querier, sessionID string) (spans, error) {
	var text string
	if err := q.QueryRowContext(ctx, "SELECT talk FROM sessions WHERE session_id = ?", sessionID).Scan(&text); err != nil {
		return nil, err
	}
	return parseSpans(text)
}

// talkNow returns the conversation and the task of a session, for a snapshot of it.
func talkNow(ctx context.Context, tx *sql.Tx, sessionID string) (talk spans, task profiles.Execution, err error) {
	var text string
	var last int64
	err = tx.QueryRowContext(ctx, "SELECT talk, execution, (SELECT COALESCE(MAX(message_id), 0) FROM messages WHERE messages.session_id = sessions.session_id) FROM sessions WHERE session_id = ?", sessionID).
		Scan(&text, &task, &last)
	if err == nil {
		talk, err = parseSpans(text)
	}
	return talk.until(last), task, err
}

// snapshotTalk returns the conversation and the task that a snapshot was saved with. Of a
// snapshot that an older Stasis saved, it returns the messages of the time before, and no
// task.
func snapshotTalk(ctx context.Context, tx *sql.Tx, id, sessionID string) (talk spans, task profiles.Execution, err error) {
	var text string
	var at, last int64
	err = tx.QueryRowContext(ctx, "SELECT talk, execution, created_at FROM snapshots WHERE snapshot_id = ?", id).Scan(&text, &task, &at)
	if err != nil || text != "" {
		if err == nil {
			talk, err = parseSpans(text)
		}
		return talk, task, err
	}
	err = tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(message_id), 0) FROM messages WHERE session_id = ? AND at <= ?", sessionID, at).Scan(&last)
	return spans(nil).until(last), "", err
}

// continueTalk sets which messages belong to the conversation of a session that continues
// from a snapshot, and its task; see [profiles.Session.Continues].
func continueTalk(ctx context.Context, tx *sql.Tx, s *profiles.Session, op string) error {
	snap, err := snapshotByID(ctx, tx, s.Continues, op)
	if err != nil || snap.SessionID != s.ID { // a renewal by a login check has no conversation
		return err
	}
	talk, task, err := snapshotTalk(ctx, tx, snap.ID, s.ID)
	if err != nil {
		return err
	}
	now, err := sessionTalk(ctx, tx, s.ID)
	if err != nil || !s.GoesBack && now.covers(talk) {
		return err
	}
	last, err := lastMessage(ctx, tx, s.ID)
	if err != nil {
		return err
	}
	s.Execution = task
	_, err = tx.ExecContext(ctx, "UPDATE sessions SET talk = ?, execution = ? WHERE session_id = ?",
		append(talk, span{last + 1, 0}).String(), task, s.ID)
	return err
}
