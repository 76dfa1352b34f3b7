-- What a session was asked for with, sealed: it lives again with that.
-- +goose Up
ALTER TABLE sessions ADD COLUMN asked BLOB;

-- +goose Down
ALTER TABLE sessions DROP COLUMN asked;
