-- The secrets of receivers of webhooks, sealed. url is '' for the receivers of a user that
-- have none of their own. The former secret (NULL: none) signs too until a time.
-- +goose Up
CREATE TABLE webhook_secrets (
    user_id      BLOB    NOT NULL,
    url          TEXT    NOT NULL,
    sealed       BLOB    NOT NULL,
    created_at   INTEGER NOT NULL,
    former       BLOB,
    former_until INTEGER NOT NULL,
    PRIMARY KEY (user_id, url)
) STRICT;

-- +goose Down
DROP TABLE webhook_secrets;
