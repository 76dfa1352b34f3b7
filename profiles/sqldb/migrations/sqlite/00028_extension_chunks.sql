-- The files of uploaded extensions, as zips, for nodes. A zip has at most 1 MiB in each row.
-- +goose Up
CREATE TABLE extension_chunks (
    sha256 TEXT    NOT NULL,
    number INTEGER NOT NULL,
    bytes  BLOB    NOT NULL,
    PRIMARY KEY (sha256, number)
) STRICT;

-- +goose Down
DROP TABLE extension_chunks;
