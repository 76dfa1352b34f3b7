-- Daemons that share this catalogue. number is that of the node's lease; 0 says that it has
-- none. It is part of a key: a transaction that locks its row with FOR KEY SHARE waits for a
-- change of the number, and not for a renewal. leased_until is of the server's clock.
-- +goose Up
CREATE TABLE nodes (
    node_id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    number       BIGINT  NOT NULL,
    url          TEXT COLLATE "C" NOT NULL,
    facts        BYTEA   NOT NULL,
    status       BYTEA   NOT NULL,
    draining     BOOLEAN NOT NULL,
    started_at   BIGINT  NOT NULL,
    leased_until BIGINT  NOT NULL,
    UNIQUE (node_id, number)
);
CREATE SEQUENCE node_numbers;

-- The node on which a session lives, or has lived last; '' says that the daemon was none.
ALTER TABLE sessions ADD COLUMN node_id TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX sessions_of_node ON sessions (node_id) WHERE ended_at = 0;

-- +goose Down
DROP INDEX sessions_of_node;
ALTER TABLE sessions DROP COLUMN node_id;
DROP SEQUENCE node_numbers;
DROP TABLE nodes;
