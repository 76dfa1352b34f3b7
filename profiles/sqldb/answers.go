package sqldb

import (
	"context"
	"database/sql"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Answers is the store of first answers. It implements [profiles.AnswerStore].
type Answers struct{ db *handle }

var _ profiles.AnswerStore = (*Answers)(nil)

const answerColumns = "scope, request_key, body_hash, status, body, created_at"

func scanAnswer(r row) (profiles.Answer, error) {
	var a profiles.Answer
	err := r.Scan(&a.Scope, &a.Key, &a.BodyHash, &a.Status, &a.Body, moment{&a.CreatedAt})
	return a, err
}

// ClaimAnswer implements [profiles.AnswerStore].
func (st *Answers) ClaimAnswer(ctx context.Context, a profiles.Answer) (known profiles.Answer, fresh bool, err error) {
	const op = "profiles.claim_answer"
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		node, number := st.db.own()
		if node != "" { // the request of a claim whose node has lost its lease has ended; what it has made may live on
			if _, err := tx.ExecContext(ctx, "DELETE FROM answers AS c WHERE scope = ? AND request_key = ? AND status = 0 AND body IS NULL AND NOT "+leased, a.Scope, a.Key); err != nil {
				return err
			}
		}
		r, err := tx.ExecContext(ctx, "INSERT INTO answers ("+answerColumns+
			", node_id, number) VALUES (?, ?, ?, 0, ?, ?, ?, ?) ON CONFLICT (scope, request_key) DO NOTHING",
			a.Scope, a.Key, a.BodyHash, blob(a.Body), stamp(a.CreatedAt), node, number)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if err != nil {
			return err
		}
		fresh = n == 1
		var of string
		known, err = scanAnswer(rowAnd{tx.QueryRowContext(ctx, "SELECT "+answerColumns+
			", node_id FROM answers WHERE scope = ? AND request_key = ?", a.Scope, a.Key), &of})
		// A claim of a node without a lease was deleted above, unless it has chosen something.
		known.Elsewhere = node != "" && known.Status == 0 && of != node
		if err != nil || !known.Elsewhere || len(known.Body) == 0 {
			return err
		}
		// This node makes what was chosen. If the other one gives up, the choice must stay.
		_, err = tx.ExecContext(ctx, "UPDATE answers SET node_id = ?, number = ? WHERE scope = ? AND request_key = ?", node, number, a.Scope, a.Key)
		return err
	})
	if err != nil {
		return profiles.Answer{}, false, err
	}
	return known, fresh, nil
}

// abandoned is the age at which a node takes over the claim of another one that has a lease.
const abandoned = time.Hour

// FinishAnswer implements [profiles.AnswerStore]. The request of a node that had lost its lease
// finds the claim of a repeat on another node, which it must leave alone.
func (st *Answers) FinishAnswer(ctx context.Context, a profiles.Answer) error {
	const op = "profiles.finish_answer"
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		query, args := "UPDATE answers SET status = ?, body = ? WHERE scope = ? AND request_key = ? AND status = 0", []any{a.Status, a.Body, a.Scope, a.Key}
		if node, _ := st.db.own(); node != "" {
			query += " AND (node_id = ? AND created_at = ? OR body IS NOT NULL OR created_at <= ?)"
			args = append(args, node, stamp(a.CreatedAt), stamp(a.CreatedAt.Add(-abandoned)))
		}
		r, err := tx.ExecContext(ctx, query, args...)
		return requireRow(r, err, fault.NotFound, op)
	})
}

// DropAnswer implements [profiles.AnswerStore].
func (st *Answers) DropAnswer(ctx context.Context, scope, key string) error {
	const op, condition = "profiles.drop_answer", "scope = ? AND request_key = ?"
	if node, number := st.db.own(); node != "" { // what another node has claimed since is not this node's to drop
		return st.deleteAnswers(ctx, op, condition+" AND status = 0 AND node_id = ? AND number = ?", scope, key, node, number)
	}
	return st.deleteAnswers(ctx, op, condition, scope, key)
}

// DropUnfinishedAnswers implements [profiles.AnswerStore].
func (st *Answers) DropUnfinishedAnswers(ctx context.Context) error {
	node, _ := st.db.own()
	if node == "" {
		return st.deleteAnswers(ctx, "profiles.drop_unfinished_answers", "status = 0 AND body IS NULL")
	}
	return st.deleteAnswers(ctx, "profiles.drop_unfinished_answers", "status = 0 AND body IS NULL AND (node_id = ? OR NOT "+leased+")", node)
}

// ExpireAnswers implements [profiles.AnswerStore].
func (st *Answers) ExpireAnswers(ctx context.Context, before time.Time) error {
	return st.deleteAnswers(ctx, "profiles.expire_answers", "created_at < ?", stamp(before))
}

// deleteAnswers deletes the answers that meet the condition, if any.
func (st *Answers) deleteAnswers(ctx context.Context, op, condition string, args ...any) error {
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM answers AS c WHERE "+condition, args...)
		return err
	})
}
