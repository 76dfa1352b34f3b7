-- Creates that wait until a node has a place for them. A row counts while nodes has its (node_id,
-- number). turn is 0 while the create waits; until paused_until it lets others go first. Afterwards
-- turn says when the create got its turn. Such rows stay until paused_until, and the last one of each
-- key while other creates of its user wait. most_of_user and most_of_key are quotas of
-- live sessions; -1: there is none.
-- +goose Up
CREATE TABLE waiting_creates (
    waiter_id    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node_id      TEXT COLLATE "C" NOT NULL,
    number       BIGINT  NOT NULL,
    user_id      BYTEA   NOT NULL,
    key_id       TEXT COLLATE "C" NOT NULL,
    engine       TEXT COLLATE "C" NOT NULL,
    chrome       TEXT COLLATE "C" NOT NULL,
    restores     BOOLEAN NOT NULL,
    most_of_user BIGINT  NOT NULL,
    most_of_key  BIGINT  NOT NULL,
    since        BIGINT  NOT NULL,
    paused_until BIGINT  NOT NULL,
    turn         BIGINT  NOT NULL
);

-- +goose Down
DROP TABLE waiting_creates;
