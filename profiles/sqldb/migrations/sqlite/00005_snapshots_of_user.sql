-- Lists and retention go by user, in the order of commits; what a session that
-- has not ended needs is looked up when a snapshot is to go.
-- +goose Up
CREATE INDEX snapshots_of_user ON snapshots (user_id, sequence);
CREATE INDEX sessions_unended ON sessions (user_id) WHERE ended_at = 0;

-- +goose Down
DROP INDEX sessions_unended;
DROP INDEX snapshots_of_user;
