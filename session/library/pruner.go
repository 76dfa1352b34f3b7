package library

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// PrunerRecords reads which snapshots exist and which are needed; see
// [profiles.RetentionStore].
type PrunerRecords interface {
	Snapshots(ctx context.Context, f profiles.SnapshotFilter) (page []profiles.Snapshot, next string, err error)
	UsersWithSnapshots(ctx context.Context) ([]string, error)
	NeededSnapshots(ctx context.Context, userID string) ([]profiles.NeededSnapshot, error)
	ExpiredSnapshots(ctx context.Context, now time.Time) ([]profiles.Snapshot, error)
}

// Policies reads users' settings.
type Policies interface {
	// Retention returns a user's own policy; nil if the user has none.
	Retention(ctx context.Context, userID string) (*Retention, error)
}

// PrunerConfig are the settings of a Pruner.
type PrunerConfig struct {
	Retention *Retention    // for users without their own policy; nil keeps all
	Grace     time.Duration // no policy removes a younger snapshot
	Now       func() time.Time
	Log       *slog.Logger
}

// Pruner removes the snapshots that no policy keeps and nothing needs. Its methods are
// safe for concurrent use.
type Pruner struct {
	records   PrunerRecords
	snapshots *Snapshots
	policies  Policies
	retention *Retention
	grace     time.Duration
	now       func() time.Time
	log       *slog.Logger
}

// NewPruner makes a Pruner.
func NewPruner(cfg PrunerConfig, records PrunerRecords, snapshots *Snapshots, policies Policies) *Pruner {
	return &Pruner{records: records, snapshots: snapshots, policies: policies,
		retention: cfg.Retention, grace: cfg.Grace, now: cfg.Now, log: cfg.Log}
}

// policy returns the user's own policy, else the daemon's; nil if there is none.
func (p *Pruner) policy(ctx context.Context, userID string) (*Retention, error) {
	own, err := p.policies.Retention(ctx, userID)
	if err != nil || own != nil {
		return own, err
	}
	return p.retention, nil
}

// PruneAll applies every user's policy until ctx ends. It logs what it removed and what
// failed.
func (p *Pruner) PruneAll(ctx context.Context) {
	users, err := p.records.UsersWithSnapshots(ctx)
	if err != nil {
		p.log.Warn("retention policies could not be applied: the users could not be listed; the next run tries again", "error", err)
	}
	for _, userID := range users {
		done, err := p.prune(ctx, []string{userID}, false)
		if ctx.Err() != nil {
			return
		}
		if done.RemovedCount > 0 {
			p.log.Info("snapshots were removed by the retention policy", "owner", profiles.OwnerOf(userID), "removed", done.RemovedCount, "freed_bytes", done.FreedBytes)
		}
		if err != nil {
			p.log.Warn("a user's retention policy could not be applied; the next run tries again", "owner", profiles.OwnerOf(userID), "error", err)
		}
	}
}

// RemoveExpired removes the snapshots that have expired. A snapshot that is being read is
// removed by a later call.
func (p *Pruner) RemoveExpired(ctx context.Context) {
	rows, err := p.records.ExpiredSnapshots(ctx, p.now())
	if err != nil {
		p.log.Warn("expired snapshots could not be listed; the next sweep tries again", "error", err)
	}
	for _, row := range rows {
		if _, err := p.snapshots.Retire(ctx, row); err != nil && !fault.Is(err, fault.SnapshotInUse) {
			p.log.Warn("an expired snapshot could not be removed; the next sweep tries again", "snapshot", row.ID, "error", err)
		}
	}
}

// PruneCheckpoints removes all automatic checkpoints of a session but the newest keep
// ones. A checkpoint that a default or another session needs stays. Damaged checkpoints
// only count where fewer than keep undamaged ones exist, but the newest damaged one
// always stays.
func (p *Pruner) PruneCheckpoints(ctx context.Context, sessionID string, keep int) {
	rows, _, err := p.records.Snapshots(ctx, profiles.SnapshotFilter{SessionID: sessionID})
	if err != nil {
		p.log.Warn("old checkpoints could not be listed; the next checkpoint tries again", "session", sessionID, "error", err)
		return
	}
	var undamaged, damaged []profiles.Snapshot // newest first
	for _, row := range rows {
		switch {
		case !row.Auto:
		case ReportOf(row).Damaged:
			damaged = append(damaged, row)
		default:
			undamaged = append(undamaged, row)
		}
	}
	damaged = damaged[min(max(1, keep-len(undamaged)), len(damaged)):]
	for _, row := range slices.Concat(undamaged[min(keep, len(undamaged)):], damaged) {
		if _, err := p.snapshots.Retire(ctx, row); err != nil && !fault.Is(err, fault.SnapshotInUse) {
			p.log.Warn("an old checkpoint could not be removed; the next checkpoint tries again", "snapshot", row.ID, "error", err)
		}
	}
}
