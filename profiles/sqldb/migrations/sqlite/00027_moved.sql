-- Sessions that were ended so that another node continues them. Nodes look for them often.
-- +goose Up
CREATE INDEX sessions_moved ON sessions (session_id) WHERE reason_code = 'moved';

-- +goose Down
DROP INDEX sessions_moved;
