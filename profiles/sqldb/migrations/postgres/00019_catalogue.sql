-- The whole catalogue as migrations/sqlite leaves it after 00019. From here on both folders
-- continue with the same numbers.
--
-- Times are nanoseconds since 1970 in UTC; 0 says that there is none. User IDs are bytes.
-- COLLATE "C" compares text by its bytes, as SQLite does.

-- +goose Up
CREATE TABLE users (
    user_id       BYTEA  NOT NULL PRIMARY KEY,
    created_at    BIGINT NOT NULL,
    settings      BYTEA,
    login_checked BYTEA
);

CREATE TABLE api_keys (
    key_id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name         TEXT COLLATE "C" NOT NULL,
    user_id      BYTEA   NOT NULL,
    all_users    BOOLEAN NOT NULL,
    rights       TEXT COLLATE "C" NOT NULL, -- JSON array
    hash         BYTEA   NOT NULL UNIQUE,
    created_at   BIGINT  NOT NULL,
    expires_at   BIGINT  NOT NULL DEFAULT 0,
    networks     TEXT COLLATE "C" NOT NULL DEFAULT 'null',
    used_at      BIGINT  NOT NULL DEFAULT 0,
    former_hash  BYTEA,
    former_until BIGINT  NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX api_keys_former ON api_keys (former_hash) WHERE former_hash IS NOT NULL;

CREATE TABLE sessions (
    session_id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id          BYTEA   NOT NULL REFERENCES users (user_id),
    key_id           TEXT COLLATE "C" NOT NULL,
    agent_name       TEXT COLLATE "C" NOT NULL,
    goal             TEXT COLLATE "C" NOT NULL,
    engine           TEXT COLLATE "C" NOT NULL,
    status           TEXT COLLATE "C" NOT NULL,
    reason           TEXT COLLATE "C" NOT NULL,
    created_at       BIGINT  NOT NULL,
    expires_at       BIGINT  NOT NULL,
    ended_at         BIGINT  NOT NULL,
    labels           TEXT COLLATE "C" NOT NULL, -- JSON object
    request_hash     TEXT COLLATE "C" NOT NULL,
    restored         BYTEA,
    outcome          BYTEA,
    base_snapshot_id TEXT COLLATE "C" NOT NULL, -- may be gone by now
    base_version     BIGINT  NOT NULL,
    run_dir          TEXT COLLATE "C" NOT NULL,
    discard          BOOLEAN NOT NULL,
    sealed           BYTEA,
    execution        TEXT COLLATE "C" NOT NULL DEFAULT '',
    asked            BYTEA,
    webhook_url      TEXT COLLATE "C" NOT NULL DEFAULT '',
    reason_code      TEXT COLLATE "C" NOT NULL DEFAULT '',
    from_default     BOOLEAN NOT NULL DEFAULT false,
    talk             TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX sessions_newest ON sessions (created_at, session_id);
CREATE INDEX sessions_of_user ON sessions (user_id, created_at, session_id);
CREATE INDEX sessions_by_status ON sessions (status);
CREATE INDEX sessions_unended ON sessions (user_id) WHERE ended_at = 0;

-- The order of commits. Rows stay when their snapshot is deleted.
CREATE TABLE commits (
    sequence    BIGINT NOT NULL PRIMARY KEY,
    snapshot_id TEXT COLLATE "C" NOT NULL UNIQUE,
    session_id  TEXT COLLATE "C" NOT NULL REFERENCES sessions (session_id)
);

CREATE TABLE snapshots (
    snapshot_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES commits (snapshot_id),
    sequence    BIGINT  NOT NULL UNIQUE REFERENCES commits (sequence),
    session_id  TEXT COLLATE "C" NOT NULL REFERENCES sessions (session_id),
    user_id     BYTEA   NOT NULL REFERENCES users (user_id),
    mode        TEXT COLLATE "C" NOT NULL,
    rescue      BOOLEAN NOT NULL,
    label       TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT  NOT NULL,
    expires_at  BIGINT  NOT NULL,
    archive_id  TEXT COLLATE "C" NOT NULL,
    size_bytes  BIGINT  NOT NULL,
    datadir     TEXT COLLATE "C" NOT NULL,
    chrome      TEXT COLLATE "C" NOT NULL,
    engine      TEXT COLLATE "C" NOT NULL,
    report      BYTEA,
    auto        BOOLEAN NOT NULL DEFAULT false,
    talk        TEXT COLLATE "C" NOT NULL DEFAULT '',
    execution   TEXT COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX snapshots_of_session ON snapshots (session_id, sequence);
CREATE INDEX snapshots_of_archive ON snapshots (archive_id);
CREATE INDEX snapshots_by_expiry ON snapshots (expires_at);
CREATE INDEX snapshots_of_user ON snapshots (user_id, sequence);

-- Every version ever; the highest one of a user is current. An empty
-- snapshot_id says that the default was removed.
CREATE TABLE defaults (
    user_id     BYTEA  NOT NULL REFERENCES users (user_id),
    version     BIGINT NOT NULL CHECK (version > 0),
    snapshot_id TEXT COLLATE "C" NOT NULL,
    session_id  TEXT COLLATE "C" NOT NULL,
    moved_at    BIGINT NOT NULL,
    renews      BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (user_id, version)
);

CREATE TABLE answers (
    scope       TEXT COLLATE "C" NOT NULL,
    request_key TEXT COLLATE "C" NOT NULL,
    body_hash   TEXT COLLATE "C" NOT NULL,
    status      BIGINT NOT NULL, -- 0 while the first request runs
    body        BYTEA,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (scope, request_key)
);
CREATE INDEX answers_by_age ON answers (created_at);

CREATE TABLE extensions (
    user_id      BYTEA  NOT NULL,
    extension_id TEXT COLLATE "C" NOT NULL,
    sha256       TEXT COLLATE "C" NOT NULL,
    name         TEXT COLLATE "C" NOT NULL,
    version      TEXT COLLATE "C" NOT NULL,
    size_bytes   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (user_id, extension_id)
);
CREATE INDEX extensions_by_files ON extensions (sha256);

CREATE TABLE snapshot_extensions (
    snapshot_id  TEXT COLLATE "C" NOT NULL REFERENCES snapshots (snapshot_id) ON DELETE CASCADE,
    extension_id TEXT COLLATE "C" NOT NULL,
    sha256       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (snapshot_id, extension_id)
);
CREATE INDEX snapshots_by_extension ON snapshot_extensions (extension_id);

CREATE TABLE runs (
    run_id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    session_id     TEXT COLLATE "C" NOT NULL REFERENCES sessions (session_id),
    number         BIGINT NOT NULL CHECK (number > 0),
    status         TEXT COLLATE "C" NOT NULL,
    cause          TEXT COLLATE "C" NOT NULL,
    started_at     BIGINT NOT NULL,
    ended_at       BIGINT NOT NULL,
    first_sequence BIGINT NOT NULL DEFAULT 1,
    next_sequence  BIGINT NOT NULL DEFAULT 1,
    event_bytes    BIGINT NOT NULL DEFAULT 0,
    UNIQUE (session_id, number)
);
CREATE INDEX runs_open ON runs (run_id) WHERE status = 'running';

CREATE TABLE events (
    run_id   TEXT COLLATE "C" NOT NULL REFERENCES runs (run_id),
    sequence BIGINT NOT NULL,
    type     TEXT COLLATE "C" NOT NULL,
    at       BIGINT NOT NULL,
    data     BYTEA,
    sealed   BYTEA,
    size     BIGINT NOT NULL,
    PRIMARY KEY (run_id, sequence)
);
CREATE INDEX events_by_time ON events (at);

CREATE TABLE messages (
    session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (session_id),
    message_id BIGINT NOT NULL CHECK (message_id > 0),
    type       TEXT COLLATE "C" NOT NULL,
    content    TEXT COLLATE "C" NOT NULL,
    metadata   BYTEA,
    at         BIGINT NOT NULL,
    PRIMARY KEY (session_id, message_id)
);

CREATE TABLE notes (
    sequence   BIGINT NOT NULL GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    user_id    BYTEA  NOT NULL REFERENCES users (user_id),
    session_id TEXT COLLATE "C" NOT NULL, -- may be no session's
    version    BIGINT NOT NULL CHECK (version > 0),
    event      TEXT COLLATE "C" NOT NULL,
    data       BYTEA  NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (user_id, session_id, version)
);
CREATE INDEX notes_of_user ON notes (user_id, sequence);

CREATE TABLE deliveries (
    sequence    BIGINT  NOT NULL GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    delivery_id TEXT COLLATE "C" NOT NULL UNIQUE,
    session_id  TEXT COLLATE "C" NOT NULL REFERENCES sessions (session_id),
    user_id     BYTEA   NOT NULL,
    url         TEXT COLLATE "C" NOT NULL,
    operator    BOOLEAN NOT NULL, -- the URL is the daemon's, not the session's
    event       TEXT COLLATE "C" NOT NULL,
    body        BYTEA   NOT NULL,
    created_at  BIGINT  NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    attempts    BIGINT  NOT NULL,
    resent      BIGINT  NOT NULL DEFAULT 0,
    since       BIGINT  NOT NULL,
    next_at     BIGINT  NOT NULL,
    last_at     BIGINT  NOT NULL,
    last_error  TEXT COLLATE "C" NOT NULL
);
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE state = 'pending';
CREATE INDEX deliveries_of_user ON deliveries (user_id, sequence);
CREATE INDEX deliveries_failed ON deliveries (sequence) WHERE state = 'failed';
CREATE INDEX deliveries_by_end ON deliveries (last_at) WHERE state <> 'pending';

-- +goose Down
DROP TABLE deliveries;
DROP TABLE notes;
DROP TABLE messages;
DROP TABLE events;
DROP TABLE runs;
DROP TABLE snapshot_extensions;
DROP TABLE extensions;
DROP TABLE answers;
DROP TABLE defaults;
DROP TABLE snapshots;
DROP TABLE commits;
DROP TABLE sessions;
DROP TABLE api_keys;
DROP TABLE users;
