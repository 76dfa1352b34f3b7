-- +goose Up
-- An uploader's extensions, each in its newest version. Snapshots hold the
-- bytes that they need themselves.
CREATE TABLE extensions (
    user_id      BLOB    NOT NULL,
    extension_id TEXT    NOT NULL,
    sha256       TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    size_bytes   INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (user_id, extension_id)
) STRICT;
CREATE INDEX extensions_by_files ON extensions (sha256);

CREATE TABLE snapshot_extensions (
    snapshot_id  TEXT NOT NULL REFERENCES snapshots (snapshot_id) ON DELETE CASCADE,
    extension_id TEXT NOT NULL,
    sha256       TEXT NOT NULL,
    PRIMARY KEY (snapshot_id, extension_id)
) STRICT;
CREATE INDEX snapshots_by_extension ON snapshot_extensions (extension_id);

-- +goose Down
DROP TABLE snapshot_extensions;
DROP TABLE extensions;
