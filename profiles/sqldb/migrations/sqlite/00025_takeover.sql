-- What a node may have on its disk of sessions that were taken over from it. sealed is that of
-- the session's record. restart says that the session is to be started again by any node. Only
-- PostgreSQL has nodes, and rows in it.
-- +goose Up
CREATE TABLE left_sessions (
    node_id    TEXT    NOT NULL,
    run_dir    TEXT    NOT NULL,
    session_id TEXT    NOT NULL REFERENCES sessions,
    ended_at   INTEGER NOT NULL,
    sealed     BLOB,
    restart    INTEGER NOT NULL,
    PRIMARY KEY (node_id, run_dir)
) STRICT;
CREATE INDEX left_sessions_restarts ON left_sessions (session_id) WHERE restart;

-- The node that sends a delivery, until a time of the server's clock.
ALTER TABLE deliveries ADD COLUMN claimed_until INTEGER NOT NULL DEFAULT 0;

-- The node whose request an answer without a status belongs to; '' says that the daemon was none.
ALTER TABLE answers ADD COLUMN node_id TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE answers DROP COLUMN node_id;
ALTER TABLE deliveries DROP COLUMN claimed_until;
DROP INDEX left_sessions_restarts;
DROP TABLE left_sessions;
