-- Times are nanoseconds since 1970 in UTC; 0 says that there is none.
-- User IDs are bytes: any UTF-8 is a user, and only equal bytes are the same one.

-- +goose Up
CREATE TABLE users (
    user_id    BLOB    NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
    key_id     TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    user_id    BLOB    NOT NULL,
    all_users  INTEGER NOT NULL CHECK (all_users IN (0, 1)),
    rights     TEXT    NOT NULL, -- JSON array
    hash       BLOB    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    session_id       TEXT    NOT NULL PRIMARY KEY,
    user_id          BLOB    NOT NULL REFERENCES users (user_id),
    key_id           TEXT    NOT NULL,
    agent_name       TEXT    NOT NULL,
    goal             TEXT    NOT NULL,
    engine           TEXT    NOT NULL,
    status           TEXT    NOT NULL,
    reason           TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    ended_at         INTEGER NOT NULL,
    labels           TEXT    NOT NULL, -- JSON object
    request_hash     TEXT    NOT NULL,
    restored         BLOB,
    outcome          BLOB,
    base_snapshot_id TEXT    NOT NULL, -- may be gone by now
    base_version     INTEGER NOT NULL,
    run_dir          TEXT    NOT NULL,
    discard          INTEGER NOT NULL  -- boolean
) STRICT;
CREATE INDEX sessions_newest ON sessions (created_at, session_id);
CREATE INDEX sessions_of_user ON sessions (user_id, created_at, session_id);
CREATE INDEX sessions_by_status ON sessions (status);

-- The order of commits. Rows stay when their snapshot is deleted, so that an
-- ID and a sequence are never reused and a page cursor never dangles.
CREATE TABLE commits (
    sequence    INTEGER NOT NULL PRIMARY KEY,
    snapshot_id TEXT    NOT NULL UNIQUE,
    session_id  TEXT    NOT NULL REFERENCES sessions (session_id)
) STRICT;

CREATE TABLE snapshots (
    snapshot_id TEXT    NOT NULL PRIMARY KEY REFERENCES commits (snapshot_id),
    sequence    INTEGER NOT NULL UNIQUE REFERENCES commits (sequence),
    session_id  TEXT    NOT NULL REFERENCES sessions (session_id),
    user_id     BLOB    NOT NULL REFERENCES users (user_id),
    mode        TEXT    NOT NULL,
    rescue      INTEGER NOT NULL CHECK (rescue IN (0, 1)),
    label       TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    archive_id  TEXT    NOT NULL,
    size_bytes  INTEGER NOT NULL,
    datadir     TEXT    NOT NULL,
    chrome      TEXT    NOT NULL,
    engine      TEXT    NOT NULL,
    report      BLOB
) STRICT;
CREATE INDEX snapshots_of_session ON snapshots (session_id, sequence);
CREATE INDEX snapshots_of_archive ON snapshots (archive_id);
CREATE INDEX snapshots_by_expiry ON snapshots (expires_at);

-- Every version ever; the highest one of a user is current. An empty
-- snapshot_id says that the default was removed.
CREATE TABLE defaults (
    user_id     BLOB    NOT NULL REFERENCES users (user_id),
    version     INTEGER NOT NULL CHECK (version > 0),
    snapshot_id TEXT    NOT NULL,
    session_id  TEXT    NOT NULL,
    moved_at    INTEGER NOT NULL,
    PRIMARY KEY (user_id, version)
) STRICT;

CREATE TABLE answers (
    scope       TEXT    NOT NULL,
    request_key TEXT    NOT NULL,
    body_hash   TEXT    NOT NULL,
    status      INTEGER NOT NULL, -- 0 while the first request runs
    body        BLOB,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (scope, request_key)
) STRICT;
CREATE INDEX answers_by_age ON answers (created_at);

-- +goose Down
DROP TABLE answers;
DROP TABLE defaults;
DROP TABLE snapshots;
DROP TABLE commits;
DROP TABLE sessions;
DROP TABLE api_keys;
DROP TABLE users;
