-- A version that a scheduled login check made of another: which one somebody made,
-- 0 for one that somebody made. Who began with that may still move the default.
-- +goose Up
ALTER TABLE defaults ADD COLUMN renews INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE defaults DROP COLUMN renews;
