-- What a key has stored is the sum of several rows, as in PostgreSQL, where nodes would wait for
-- each other. SQLite has one writer, which changes part 0; a transfer may bring others.
-- +goose Up
CREATE TABLE stored_parts (
    key_id    TEXT    NOT NULL,
    part      INTEGER NOT NULL,
    snapshots INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    PRIMARY KEY (key_id, part)
) STRICT;
INSERT INTO stored_parts SELECT key_id, 0, snapshots, bytes FROM stored_by_key;
DROP TRIGGER stored_by_other_key;
DROP TRIGGER stored_removed;
DROP TRIGGER stored_added;
DROP TABLE stored_by_key;
CREATE VIEW stored_by_key AS SELECT key_id, SUM(snapshots) AS snapshots, SUM(bytes) AS bytes FROM stored_parts GROUP BY key_id;

-- +goose StatementBegin
CREATE TRIGGER stored_added AFTER INSERT ON snapshots BEGIN
    INSERT INTO stored_by_user VALUES (NEW.user_id, 1, NEW.size_bytes)
        ON CONFLICT (user_id) DO UPDATE SET snapshots = snapshots + 1, bytes = bytes + NEW.size_bytes;
    INSERT INTO stored_parts SELECT key_id, 0, 1, NEW.size_bytes FROM sessions WHERE session_id = NEW.session_id
        ON CONFLICT (key_id, part) DO UPDATE SET snapshots = snapshots + 1, bytes = bytes + NEW.size_bytes;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_removed AFTER DELETE ON snapshots BEGIN
    UPDATE stored_by_user SET snapshots = snapshots - 1, bytes = bytes - OLD.size_bytes WHERE user_id = OLD.user_id;
    INSERT INTO stored_parts SELECT key_id, 0, -1, -OLD.size_bytes FROM sessions WHERE session_id = OLD.session_id
        ON CONFLICT (key_id, part) DO UPDATE SET snapshots = snapshots + excluded.snapshots, bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER stored_by_other_key AFTER UPDATE OF key_id ON sessions WHEN OLD.key_id <> NEW.key_id BEGIN
    INSERT INTO stored_parts SELECT OLD.key_id, 0, -COUNT(*), -COALESCE(SUM(size_bytes), 0) FROM snapshots WHERE session_id = NEW.session_id
        ON CONFLICT (key_id, part) DO UPDATE SET snapshots = snapshots + excluded.snapshots, bytes = bytes + excluded.bytes;
    INSERT INTO stored_parts SELECT NEW.key_id, 0, COUNT(*), COALESCE(SUM(size_bytes), 0) FROM snapshots WHERE session_id = NEW.session_id
        ON CONFLICT (key_id, part) DO UPDATE SET snapshots = snapshots + excluded.snapshots, bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER stored_by_other_key;
DROP TRIGGER stored_removed;
DROP TRIGGER stored_added;
DROP VIEW stored_by_key;
CREATE TABLE stored_by_key (
    key_id    TEXT    NOT NULL PRIMARY KEY,
    snapshots INTEGER NOT NULL,
    bytes     INTEGER NOT NULL
) STRICT;
INSERT INTO stored_by_key SELECT key_id, SUM(snapshots), SUM(bytes) FROM stored_parts GROUP BY key_id;
DROP TABLE stored_parts;

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
