-- What users and keys have stored, so that a create with quotas does not count all snapshots. The
-- triggers keep it, also when an older Stasis writes.
-- +goose Up
CREATE TABLE stored_by_user (
    user_id   BLOB    NOT NULL PRIMARY KEY,
    snapshots INTEGER NOT NULL,
    bytes     INTEGER NOT NULL
) STRICT;
INSERT INTO stored_by_user SELECT user_id, COUNT(*), SUM(size_bytes) FROM snapshots GROUP BY user_id;

CREATE TABLE stored_by_key (
    key_id    TEXT    NOT NULL PRIMARY KEY,
    snapshots INTEGER NOT NULL,
    bytes     INTEGER NOT NULL
) STRICT;
INSERT INTO stored_by_key SELECT s.key_id, COUNT(*), SUM(p.size_bytes) FROM sessions s JOIN snapshots p ON p.session_id = s.session_id GROUP BY s.key_id;

-- +goose StatementBegin
CREATE TRIGGER stored_added AFTER INSERT ON snapshots BEGIN
    INSERT INTO stored_by_user VALUES (NEW.user_id, 1, NEW.size_bytes)
        ON CONFLICT (user_id) DO UPDATE SET snapshots = snapshots + 1, bytes = bytes + NEW.size_bytes;
    INSERT INTO stored_by_key SELECT key_id, 1, NEW.size_bytes FROM sessions WHERE session_id = NEW.session_id
        ON CONFLICT (key_id) DO UPDATE SET snapshots = snapshots + 1, bytes = bytes + NEW.size_bytes;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_removed AFTER DELETE ON snapshots BEGIN
    UPDATE stored_by_user SET snapshots = snapshots - 1, bytes = bytes - OLD.size_bytes WHERE user_id = OLD.user_id;
    UPDATE stored_by_key SET snapshots = snapshots - 1, bytes = bytes - OLD.size_bytes
        WHERE key_id = (SELECT key_id FROM sessions WHERE session_id = OLD.session_id);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_by_other_key AFTER UPDATE OF key_id ON sessions WHEN OLD.key_id <> NEW.key_id BEGIN
    UPDATE stored_by_key SET
        snapshots = snapshots - (SELECT COUNT(*) FROM snapshots WHERE session_id = NEW.session_id),
        bytes = bytes - (SELECT COALESCE(SUM(size_bytes), 0) FROM snapshots WHERE session_id = NEW.session_id)
        WHERE key_id = OLD.key_id;
    INSERT INTO stored_by_key SELECT NEW.key_id, COUNT(*), COALESCE(SUM(size_bytes), 0) FROM snapshots WHERE session_id = NEW.session_id
        ON CONFLICT (key_id) DO UPDATE SET snapshots = snapshots + excluded.snapshots, bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER stored_by_other_key;
DROP TRIGGER stored_removed;
DROP TRIGGER stored_added;
DROP TABLE stored_by_key;
DROP TABLE stored_by_user;
