-- How many attempts a delivery had when it was last resent: the pauses between
-- those since begin anew. What is settled is forgotten by when it was.
-- +goose Up
ALTER TABLE deliveries ADD COLUMN resent INTEGER NOT NULL DEFAULT 0;
DROP INDEX deliveries_by_age;
CREATE INDEX deliveries_by_end ON deliveries (last_at) WHERE state <> 'pending';

-- +goose Down
DROP INDEX deliveries_by_end;
CREATE INDEX deliveries_by_age ON deliveries (created_at) WHERE state <> 'pending';
ALTER TABLE deliveries DROP COLUMN resent;
