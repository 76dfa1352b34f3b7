package library

import (
	"context"
	"log/slog"
	"time"
)

// sweepEvery is how often what has expired is removed, and pruneEvery how often
// snapshots are held against the policies.
const (
	sweepEvery = 10 * time.Minute
	pruneEvery = time.Hour
)

// ExpiringRecords are the records that are kept for a time; see [profiles.EventStore],
// [profiles.AnswerStore] and [profiles.DeliveryStore].
type ExpiringRecords interface {
	ExpireEvents(ctx context.Context, before time.Time) error
	ExpireAnswers(ctx context.Context, before time.Time) error
	ExpireDeliveries(ctx context.Context, before time.Time) error
}

// JanitorConfig is what a Janitor is made of.
type JanitorConfig struct {
	Records ExpiringRecords
	Pruner  *Pruner
	// How long records are kept.
	Events, Answers, Deliveries time.Duration
	Now                         func() time.Time
	Log                         *slog.Logger
}

// Janitor removes what has expired, rescue snapshots and records, and the snapshots
// that no policy keeps.
type Janitor struct{ cfg JanitorConfig }

// NewJanitor makes a Janitor.
func NewJanitor(cfg JanitorConfig) *Janitor { return &Janitor{cfg: cfg} }

// Run sweeps and prunes at once, and again from time to time until ctx ends.
func (j *Janitor) Run(ctx context.Context) {
	sweep, prune := time.NewTicker(sweepEvery), time.NewTicker(pruneEvery)
	defer sweep.Stop()
	defer prune.Stop()
	j.Sweep(ctx)
	j.cfg.Pruner.PruneAll(ctx)
	for {
		select {
		case <-sweep.C:
			j.Sweep(ctx)
		case <-prune.C:
			j.cfg.Pruner.PruneAll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Sweep removes what has expired. It logs what could not be removed, which goes at a
// later call.
func (j *Janitor) Sweep(ctx context.Context) {
	now := j.cfg.Now()
	if err := j.cfg.Records.ExpireEvents(ctx, now.Add(-j.cfg.Events)); err != nil {
		j.cfg.Log.Warn("old events could not be removed", "error", err)
	}
	if err := j.cfg.Records.ExpireAnswers(ctx, now.Add(-j.cfg.Answers)); err != nil {
		j.cfg.Log.Warn("old answers could not be removed", "error", err)
	}
	if err := j.cfg.Records.ExpireDeliveries(ctx, now.Add(-j.cfg.Deliveries)); err != nil {
		j.cfg.Log.Warn("old deliveries of webhooks could not be removed", "error", err)
	}
	j.cfg.Pruner.RemoveExpired(ctx)
}
