-- What nodes claim of each other. Only PostgreSQL has rows in these tables.
-- +goose Up

-- A snapshot that is being saved uses an archive. The row without a snapshot says that a node
-- removes the archive, or has begun to and may still do so.
CREATE TABLE archive_uses (
    archive_id  TEXT NOT NULL,
    snapshot_id TEXT NOT NULL,
    node_id     TEXT NOT NULL,
    number      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (archive_id, snapshot_id)
) STRICT;

-- Snapshots that are being read.
CREATE TABLE snapshot_holds (
    hold_id     TEXT NOT NULL PRIMARY KEY,
    snapshot_id TEXT NOT NULL,
    node_id     TEXT NOT NULL,
    number      INTEGER NOT NULL,
    purpose     TEXT NOT NULL
) STRICT;
CREATE INDEX snapshot_holds_of ON snapshot_holds (snapshot_id);

-- Sessions that are being created or live, and the environment that each started from. limits
-- says what it counts for: '' nothing yet, 'sessions', or 'snapshots' too.
CREATE TABLE session_claims (
    session_id  TEXT NOT NULL PRIMARY KEY,
    node_id     TEXT NOT NULL,
    number      INTEGER NOT NULL,
    key_id      TEXT NOT NULL,
    user_id     BLOB  NOT NULL,
    source_type TEXT NOT NULL,
    source_id   TEXT NOT NULL,
    snapshot_id TEXT NOT NULL,
    quota_key   TEXT NOT NULL,
    quota_user  BLOB  NOT NULL,
    limits      TEXT NOT NULL
) STRICT;
CREATE INDEX session_claims_of_user ON session_claims (user_id);
CREATE INDEX session_claims_by_quota_user ON session_claims (quota_user);
CREATE INDEX session_claims_by_quota_key ON session_claims (quota_key);

-- Login checks under way: one for each user. wanted says that a create waits for it.
CREATE TABLE check_claims (
    user_id     BLOB   NOT NULL PRIMARY KEY,
    node_id     TEXT NOT NULL,
    number      INTEGER  NOT NULL,
    scheduled   INTEGER NOT NULL,
    snapshot_id TEXT NOT NULL,
    wanted      INTEGER NOT NULL
) STRICT;

-- Unspent tickets of POST /v1/tickets, by the SHA-256 of each.
CREATE TABLE tickets (
    hash       BLOB  NOT NULL PRIMARY KEY,
    key_id     TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tickets_of_key ON tickets (key_id);

-- The node that runs the request of an answer without a status.
ALTER TABLE answers ADD COLUMN number INTEGER NOT NULL DEFAULT 0;

-- What the session's tickets are derived from, with a secret; '': they end with the daemon.
ALTER TABLE sessions ADD COLUMN ticket_salt TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN ticket_salt;
ALTER TABLE answers DROP COLUMN number;
DROP TABLE tickets;
DROP TABLE check_claims;
DROP TABLE session_claims;
DROP TABLE snapshot_holds;
DROP TABLE archive_uses;
