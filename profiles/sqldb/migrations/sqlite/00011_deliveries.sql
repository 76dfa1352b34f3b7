-- What webhooks are told of sessions: each row is written with what it tells of.
-- +goose Up
ALTER TABLE sessions ADD COLUMN webhook_url TEXT NOT NULL DEFAULT '';

CREATE TABLE deliveries (
    sequence    INTEGER NOT NULL PRIMARY KEY,
    delivery_id TEXT    NOT NULL UNIQUE,
    session_id  TEXT    NOT NULL REFERENCES sessions (session_id),
    user_id     BLOB    NOT NULL,
    url         TEXT    NOT NULL,
    operator    INTEGER NOT NULL, -- the URL is the daemon's, not the session's
    event       TEXT    NOT NULL,
    body        BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    attempts    INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    next_at     INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    last_error  TEXT    NOT NULL
) STRICT;
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_of_user ON deliveries (user_id, sequence);
CREATE INDEX deliveries_by_age ON deliveries (created_at) WHERE state <> 'pending';

-- +goose Down
DROP TABLE deliveries;
ALTER TABLE sessions DROP COLUMN webhook_url;
