-- The secrets of receivers of webhooks, sealed. url is '' for the receivers of a user that
-- have none of their own. The former secret (NULL: none) signs too until a time.
-- +goose Up
CREATE TABLE webhook_secrets (
    user_id      BYTEA    NOT NULL,
    url          TEXT COLLATE "C" NOT NULL,
    sealed       BYTEA    NOT NULL,
    created_at   BIGINT  NOT NULL,
    former       BYTEA,
    former_until BIGINT  NOT NULL,
    PRIMARY KEY (user_id, url)
);

-- +goose Down
DROP TABLE webhook_secrets;
