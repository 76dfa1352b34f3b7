-- The files of uploaded extensions, as zips, for nodes. A zip has at most 1 MiB in each row.
-- +goose Up
CREATE TABLE extension_chunks (
    sha256 TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    bytes  BYTEA  NOT NULL,
    PRIMARY KEY (sha256, number)
);
ALTER TABLE extension_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL; -- it is compressed already

-- +goose Down
DROP TABLE extension_chunks;
