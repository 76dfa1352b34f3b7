-- What nodes claim of each other. A row counts while nodes has its (node_id, number).
-- +goose Up

-- A snapshot that is being saved uses an archive. The row without a snapshot says that a node
-- removes the archive, or has begun to and may still do so.
CREATE TABLE archive_uses (
    archive_id  TEXT COLLATE "C" NOT NULL,
    snapshot_id TEXT COLLATE "C" NOT NULL,
    node_id     TEXT COLLATE "C" NOT NULL,
    number      BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (archive_id, snapshot_id)
);

-- Snapshots that are being read.
CREATE TABLE snapshot_holds (
    hold_id     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    snapshot_id TEXT COLLATE "C" NOT NULL,
    node_id     TEXT COLLATE "C" NOT NULL,
    number      BIGINT NOT NULL,
    purpose     TEXT COLLATE "C" NOT NULL
);
CREATE INDEX snapshot_holds_of ON snapshot_holds (snapshot_id);

-- Sessions that are being created or live, and the environment that each started from. limits
-- says what it counts for: '' nothing yet, 'sessions', or 'snapshots' too.
CREATE TABLE session_claims (
    session_id  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node_id     TEXT COLLATE "C" NOT NULL,
    number      BIGINT NOT NULL,
    key_id      TEXT COLLATE "C" NOT NULL,
    user_id     BYTEA  NOT NULL,
    source_type TEXT COLLATE "C" NOT NULL,
    source_id   TEXT COLLATE "C" NOT NULL,
    snapshot_id TEXT COLLATE "C" NOT NULL,
    quota_key   TEXT COLLATE "C" NOT NULL,
    quota_user  BYTEA  NOT NULL,
    limits      TEXT COLLATE "C" NOT NULL
);
CREATE INDEX session_claims_of_user ON session_claims (user_id);
CREATE INDEX session_claims_by_quota_user ON session_claims (quota_user);
CREATE INDEX session_claims_by_quota_key ON session_claims (quota_key);

-- Login checks under way: one for each user. wanted says that a create waits for it.
CREATE TABLE check_claims (
    user_id     BYTEA   NOT NULL PRIMARY KEY,
    node_id     TEXT COLLATE "C" NOT NULL,
    number      BIGINT  NOT NULL,
    scheduled   BOOLEAN NOT NULL,
    snapshot_id TEXT COLLATE "C" NOT NULL,
    wanted      BOOLEAN NOT NULL
);

-- Unspent tickets of POST /v1/tickets, by the SHA-256 of each.
CREATE TABLE tickets (
    hash       BYTEA  NOT NULL PRIMARY KEY,
    key_id     TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX tickets_of_key ON tickets (key_id);

-- The node that runs the request of an answer without a status.
ALTER TABLE answers ADD COLUMN number BIGINT NOT NULL DEFAULT 0;

-- What the session's tickets are derived from, with a secret; '': they end with the daemon.
ALTER TABLE sessions ADD COLUMN ticket_salt TEXT COLLATE "C" NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN ticket_salt;
ALTER TABLE answers DROP COLUMN number;
DROP TABLE tickets;
DROP TABLE check_claims;
DROP TABLE session_claims;
DROP TABLE snapshot_holds;
DROP TABLE archive_uses;
