-- Documents of a user, as JSON: settings that outlive any default, and the
-- outcome of the last check of the login in the default.
-- +goose Up
ALTER TABLE users ADD COLUMN settings BLOB;
ALTER TABLE users ADD COLUMN login_checked BLOB;

-- +goose Down
ALTER TABLE users DROP COLUMN login_checked;
ALTER TABLE users DROP COLUMN settings;
