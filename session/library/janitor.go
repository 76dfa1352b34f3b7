package library

import (
	"context"
	"log/slog"
	"time"
)

// sweepEvery is how often expired records and snapshots are removed. pruneEvery is how
// often retention policies are applied.
const (
	sweepEvery = 10 * time.Minute
	pruneEvery = time.Hour
)

// ExpiringRecords removes old records; see [profiles.EventStore], [profiles.AnswerStore]
// and [profiles.DeliveryStore].
type ExpiringRecords interface {
	ExpireEvents(ctx context.Context, before time.Time) error
	ExpireAnswers(ctx context.Context, before time.Time) error
	ExpireDeliveries(ctx context.Context, before time.Time) error
}

// JanitorConfig is what NewJanitor needs.
type JanitorConfig struct {
	Records ExpiringRecords
	Pruner  *Pruner
	// Turn reports whether this daemon removes anything: of several with one catalogue, one
	// does. nil: it always does.
	Turn func() bool
	// Leftovers removes what other nodes have left in the store; nil: there is one daemon.
	Leftovers func(context.Context)
	// How long records are kept.
	Events, Answers, Deliveries time.Duration
	Now                         func() time.Time
	Log                         *slog.Logger
}

// Janitor removes expired records, expired rescue snapshots, and the snapshots that no
// policy keeps.
type Janitor struct{ cfg JanitorConfig }

// NewJanitor makes a Janitor.
func NewJanitor(cfg JanitorConfig) *Janitor { return &Janitor{cfg: cfg} }

// Run sweeps and prunes at once, and then periodically until ctx ends.
func (j *Janitor) Run(ctx context.Context) {
	sweep, prune := time.NewTicker(sweepEvery), time.NewTicker(pruneEvery)
	defer sweep.Stop()
	defer prune.Stop()
	j.sweep(ctx)
	j.prune(ctx)
	for {
		select {
		case <-sweep.C:
			j.sweep(ctx)
		case <-prune.C:
			j.prune(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (j *Janitor) sweep(ctx context.Context) {
	if j.cfg.Turn == nil || j.cfg.Turn() {
		j.Sweep(ctx)
	}
}

func (j *Janitor) prune(ctx context.Context) {
	if j.cfg.Turn == nil || j.cfg.Turn() {
		j.cfg.Pruner.PruneAll(ctx)
	}
}

// Sweep removes what has expired. It logs what could not be removed; a later call tries
// again.
func (j *Janitor) Sweep(ctx context.Context) {
	now := j.cfg.Now()
	if err := j.cfg.Records.ExpireEvents(ctx, now.Add(-j.cfg.Events)); err != nil {
		j.cfg.Log.Warn("old events could not be removed; the next sweep tries again", "error", err)
	}
	if err := j.cfg.Records.ExpireAnswers(ctx, now.Add(-j.cfg.Answers)); err != nil {
		j.cfg.Log.Warn("old answers to requests with an Idempotency-Key could not be removed; the next sweep tries again", "error", err)
	}
	if err := j.cfg.Records.ExpireDeliveries(ctx, now.Add(-j.cfg.Deliveries)); err != nil {
		j.cfg.Log.Warn("old webhook deliveries could not be removed; the next sweep tries again", "error", err)
	}
	j.cfg.Pruner.RemoveExpired(ctx)
	if j.cfg.Leftovers != nil {
		j.cfg.Leftovers(ctx)
	}
}
