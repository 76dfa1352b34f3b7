-- Checkpoints that the daemon made by itself: how many stay is the session's to say.
-- +goose Up
ALTER TABLE snapshots ADD COLUMN auto INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE snapshots DROP COLUMN auto;
