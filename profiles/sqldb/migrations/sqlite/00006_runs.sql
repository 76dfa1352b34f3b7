-- What happened in sessions. A run's next_sequence is the number of its next
-- event and first_sequence that of the oldest one that is kept; equal, there is
-- none. event_bytes is the sum of the sizes of those that are kept.
-- +goose Up
CREATE TABLE runs (
    run_id         TEXT    NOT NULL PRIMARY KEY,
    session_id     TEXT    NOT NULL REFERENCES sessions (session_id),
    number         INTEGER NOT NULL CHECK (number > 0),
    status         TEXT    NOT NULL,
    cause          TEXT    NOT NULL,
    started_at     INTEGER NOT NULL,
    ended_at       INTEGER NOT NULL,
    first_sequence INTEGER NOT NULL DEFAULT 1,
    next_sequence  INTEGER NOT NULL DEFAULT 1,
    event_bytes    INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, number)
) STRICT;
CREATE INDEX runs_open ON runs (run_id) WHERE status = 'running';

CREATE TABLE events (
    run_id   TEXT    NOT NULL REFERENCES runs (run_id),
    sequence INTEGER NOT NULL,
    type     TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    data     BLOB,
    sealed   BLOB,
    size     INTEGER NOT NULL,
    PRIMARY KEY (run_id, sequence)
) STRICT;
CREATE INDEX events_by_time ON events (at);

-- +goose Down
DROP TABLE events;
DROP TABLE runs;
