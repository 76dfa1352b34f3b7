-- What a rescue of a live session needs and its datadir lacks, sealed.
-- +goose Up
ALTER TABLE sessions ADD COLUMN sealed BLOB;

-- +goose Down
ALTER TABLE sessions DROP COLUMN sealed;
