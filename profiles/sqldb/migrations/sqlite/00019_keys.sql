-- When a key expires (0: never), the networks that it may be used from ('null': all), when
-- it was last used, and the hash of its former secret, which is valid until a time.
-- +goose Up
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN networks TEXT NOT NULL DEFAULT 'null';
ALTER TABLE api_keys ADD COLUMN used_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_keys ADD COLUMN former_hash BLOB;
ALTER TABLE api_keys ADD COLUMN former_until INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX api_keys_former ON api_keys (former_hash) WHERE former_hash IS NOT NULL;

-- +goose Down
DROP INDEX api_keys_former;
ALTER TABLE api_keys DROP COLUMN former_until;
ALTER TABLE api_keys DROP COLUMN former_hash;
ALTER TABLE api_keys DROP COLUMN used_at;
ALTER TABLE api_keys DROP COLUMN networks;
ALTER TABLE api_keys DROP COLUMN expires_at;
