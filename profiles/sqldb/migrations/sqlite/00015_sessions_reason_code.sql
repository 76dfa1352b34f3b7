-- Why a session ended or failed, for programs; '' where an older Stasis wrote the
-- reason as text alone.
-- +goose Up
ALTER TABLE sessions ADD COLUMN reason_code TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN reason_code;
