-- Those that were given up are counted at each look at the metrics.
-- +goose Up
CREATE INDEX deliveries_failed ON deliveries (sequence) WHERE state = 'failed';

-- +goose Down
DROP INDEX deliveries_failed;
