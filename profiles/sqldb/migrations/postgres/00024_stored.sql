-- What users and keys have stored, so that a create with quotas does not count all snapshots. The
-- triggers keep it, also when an older Stasis writes.
-- +goose Up
CREATE TABLE stored_by_user (
    user_id   BYTEA  NOT NULL PRIMARY KEY,
    snapshots BIGINT NOT NULL,
    bytes     BIGINT NOT NULL
);
INSERT INTO stored_by_user SELECT user_id, COUNT(*), SUM(size_bytes) FROM snapshots GROUP BY user_id;

CREATE TABLE stored_by_key (
    key_id    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    snapshots BIGINT NOT NULL,
    bytes     BIGINT NOT NULL
);
INSERT INTO stored_by_key SELECT s.key_id, COUNT(*), SUM(p.size_bytes) FROM sessions s JOIN snapshots p ON p.session_id = s.session_id GROUP BY s.key_id;

-- +goose StatementBegin
CREATE FUNCTION count_stored() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    n BIGINT;
    b BIGINT;
BEGIN
    IF TG_TABLE_NAME = 'sessions' THEN
        SELECT COUNT(*), COALESCE(SUM(size_bytes), 0) INTO n, b FROM snapshots WHERE session_id = NEW.session_id;
        UPDATE stored_by_key SET snapshots = snapshots - n, bytes = bytes - b WHERE key_id = OLD.key_id;
        INSERT INTO stored_by_key AS s VALUES (NEW.key_id, n, b)
            ON CONFLICT (key_id) DO UPDATE SET snapshots = s.snapshots + n, bytes = s.bytes + b;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO stored_by_user AS s VALUES (NEW.user_id, 1, NEW.size_bytes)
            ON CONFLICT (user_id) DO UPDATE SET snapshots = s.snapshots + 1, bytes = s.bytes + NEW.size_bytes;
        INSERT INTO stored_by_key AS s SELECT key_id, 1, NEW.size_bytes FROM sessions WHERE session_id = NEW.session_id
            ON CONFLICT (key_id) DO UPDATE SET snapshots = s.snapshots + 1, bytes = s.bytes + NEW.size_bytes;
    ELSE
        UPDATE stored_by_user SET snapshots = snapshots - 1, bytes = bytes - OLD.size_bytes WHERE user_id = OLD.user_id;
        UPDATE stored_by_key SET snapshots = snapshots - 1, bytes = bytes - OLD.size_bytes
            WHERE key_id = (SELECT key_id FROM sessions WHERE session_id = OLD.session_id);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER stored_added AFTER INSERT ON snapshots FOR EACH ROW EXECUTE FUNCTION count_stored();
CREATE TRIGGER stored_removed AFTER DELETE ON snapshots FOR EACH ROW EXECUTE FUNCTION count_stored();
CREATE TRIGGER stored_by_other_key AFTER UPDATE OF key_id ON sessions FOR EACH ROW WHEN (OLD.key_id <> NEW.key_id) EXECUTE FUNCTION count_stored();

-- +goose Down
DROP TRIGGER stored_by_other_key ON sessions;
DROP TRIGGER stored_removed ON snapshots;
DROP TRIGGER stored_added ON snapshots;
DROP FUNCTION count_stored();
DROP TABLE stored_by_key;
DROP TABLE stored_by_user;
