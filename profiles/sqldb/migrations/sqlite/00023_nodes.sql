-- Daemons that share a catalogue. Only PostgreSQL has rows in it.
-- +goose Up
CREATE TABLE nodes (
    node_id      TEXT    NOT NULL PRIMARY KEY,
    number       INTEGER NOT NULL,
    url          TEXT    NOT NULL,
    facts        BLOB    NOT NULL,
    status       BLOB    NOT NULL,
    draining     INTEGER NOT NULL,
    started_at   INTEGER NOT NULL,
    leased_until INTEGER NOT NULL,
    UNIQUE (node_id, number)
) STRICT;

-- The node on which a session lives, or has lived last; '' says that the daemon was none.
ALTER TABLE sessions ADD COLUMN node_id TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_of_node ON sessions (node_id) WHERE ended_at = 0;

-- +goose Down
DROP INDEX sessions_of_node;
ALTER TABLE sessions DROP COLUMN node_id;
DROP TABLE nodes;
