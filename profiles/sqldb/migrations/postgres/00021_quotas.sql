-- The quotas of a key ('': none), and what is looked up for them: which sessions a key made.
-- +goose Up
ALTER TABLE api_keys ADD COLUMN quotas TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX sessions_of_key ON sessions (key_id);

-- +goose Down
DROP INDEX sessions_of_key;
ALTER TABLE api_keys DROP COLUMN quotas;
