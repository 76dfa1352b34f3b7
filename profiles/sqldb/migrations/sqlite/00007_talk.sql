-- What a user and an agent said in a session, how the agent's task stands, and
-- what an agent notes of its work. The sequence of notes is the order in which
-- they were stored.
-- +goose Up
ALTER TABLE sessions ADD COLUMN execution TEXT NOT NULL DEFAULT '';

CREATE TABLE messages (
    session_id TEXT    NOT NULL REFERENCES sessions (session_id),
    message_id INTEGER NOT NULL CHECK (message_id > 0),
    type       TEXT    NOT NULL,
    content    TEXT    NOT NULL,
    metadata   BLOB,
    at         INTEGER NOT NULL,
    PRIMARY KEY (session_id, message_id)
) STRICT;

CREATE TABLE notes (
    sequence   INTEGER NOT NULL PRIMARY KEY,
    user_id    BLOB    NOT NULL REFERENCES users (user_id),
    session_id TEXT    NOT NULL, -- may be no session's
    version    INTEGER NOT NULL CHECK (version > 0),
    event      TEXT    NOT NULL,
    data       BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (user_id, session_id, version)
) STRICT;
CREATE INDEX notes_of_user ON notes (user_id, sequence);

-- +goose Down
DROP TABLE notes;
DROP TABLE messages;
ALTER TABLE sessions DROP COLUMN execution;
