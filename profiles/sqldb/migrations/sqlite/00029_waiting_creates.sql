-- Creates that wait until a node has a place for them. Only PostgreSQL has rows in this table.
-- +goose Up
CREATE TABLE waiting_creates (
    waiter_id    TEXT    NOT NULL PRIMARY KEY,
    node_id      TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    user_id      BLOB    NOT NULL,
    key_id       TEXT    NOT NULL,
    engine       TEXT    NOT NULL,
    chrome       TEXT    NOT NULL,
    restores     INTEGER NOT NULL,
    most_of_user INTEGER NOT NULL,
    most_of_key  INTEGER NOT NULL,
    since        INTEGER NOT NULL,
    paused_until INTEGER NOT NULL,
    turn         INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE waiting_creates;
