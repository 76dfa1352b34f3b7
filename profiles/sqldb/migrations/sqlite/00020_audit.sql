-- The audit log: who did what, each entry with the hash of the one before.
-- +goose Up
CREATE TABLE audit (
    number      INTEGER NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    key_id      TEXT    NOT NULL,
    key_user    BLOB    NOT NULL,
    address     TEXT    NOT NULL,
    call        TEXT    NOT NULL,
    user_id     BLOB    NOT NULL,
    session_id  TEXT    NOT NULL,
    snapshot_id TEXT    NOT NULL,
    object      TEXT    NOT NULL,
    detail      TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    code        TEXT    NOT NULL,
    count       INTEGER NOT NULL,
    previous    BLOB    NOT NULL,
    hash        BLOB    NOT NULL
) STRICT;
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_of_user ON audit (user_id, number);
CREATE INDEX audit_of_session ON audit (session_id, number) WHERE session_id <> '';

-- +goose Down
DROP TABLE audit;
