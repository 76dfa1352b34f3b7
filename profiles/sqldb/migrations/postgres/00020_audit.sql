-- The audit log: who did what, each entry with the hash of the one before.
-- +goose Up
CREATE TABLE audit (
    number      BIGINT  NOT NULL PRIMARY KEY,
    at          BIGINT  NOT NULL,
    actor       TEXT COLLATE "C" NOT NULL,
    key_id      TEXT COLLATE "C" NOT NULL,
    key_user    BYTEA    NOT NULL,
    address     TEXT COLLATE "C" NOT NULL,
    call        TEXT COLLATE "C" NOT NULL,
    user_id     BYTEA    NOT NULL,
    session_id  TEXT COLLATE "C" NOT NULL,
    snapshot_id TEXT COLLATE "C" NOT NULL,
    object      TEXT COLLATE "C" NOT NULL,
    detail      TEXT COLLATE "C" NOT NULL,
    outcome     TEXT COLLATE "C" NOT NULL,
    code        TEXT COLLATE "C" NOT NULL,
    count       BIGINT  NOT NULL,
    previous    BYTEA    NOT NULL,
    hash        BYTEA    NOT NULL
);
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_of_user ON audit (user_id, number);
CREATE INDEX audit_of_session ON audit (session_id, number) WHERE session_id <> '';

-- +goose Down
DROP TABLE audit;
