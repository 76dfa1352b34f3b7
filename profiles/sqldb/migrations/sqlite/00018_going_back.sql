-- Whether a session started from its user's default, and which messages belong to its
-- conversation: '' for all, else spans of IDs as JSON, [[first, last], …], where last 0
-- means no end. A snapshot has those of its time and the status of the task; '' where an
-- older Stasis saved it.
-- +goose Up
ALTER TABLE sessions ADD COLUMN from_default INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN talk TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN talk TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN execution TEXT NOT NULL DEFAULT '';
UPDATE sessions SET from_default = 1
    WHERE restored IS NOT NULL AND json_valid(CAST(restored AS TEXT))
      AND json_extract(CAST(restored AS TEXT), '$.source.type') = 'user_default';

-- +goose Down
ALTER TABLE snapshots DROP COLUMN execution;
ALTER TABLE snapshots DROP COLUMN talk;
ALTER TABLE sessions DROP COLUMN talk;
ALTER TABLE sessions DROP COLUMN from_default;
