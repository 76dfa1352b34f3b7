package library

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// PruneRequest says whose snapshots are pruned.
type PruneRequest struct {
	UserID string // "": the caller's; else the caller must be allowed to act for it
	All    bool   // all users: needs the admin right
	DryRun bool   // only report what would be removed
}

// PruneAnswer is what a prune removed, or would remove. It is the wire format.
type PruneAnswer struct {
	DryRun       bool             `json:"dry_run"`
	RemovedCount int              `json:"removed_count"`
	FreedBytes   int64            `json:"freed_bytes"` // of archives that no snapshot names any more
	Removed      []PrunedSnapshot `json:"removed"`     // at most maxPruned
	KeptCount    int              `json:"kept_count"`
	// KeptBy counts the snapshots that each reason keeps; a snapshot may have several
	// reasons.
	KeptBy map[Reason]int `json:"kept_by"`
	Kept   []KeptSnapshot `json:"kept"` // in a dry run, at most maxPruned; else nil
}

// maxPruned is the most snapshots that an answer lists. The counts cover all.
const maxPruned = 10_000

// PrunedSnapshot is a snapshot that was or would be removed.
type PrunedSnapshot struct {
	ID        string    `json:"id"`
	SessionID string    `json:"session_id"`
	UserID    string    `json:"user_id"`
	CreatedAt time.Time `json:"created_at"`
	SizeBytes int64     `json:"size_bytes"` // of its archive, which other snapshots may share
}

// KeptSnapshot is a snapshot that would stay, and why.
type KeptSnapshot struct {
	PrunedSnapshot
	Reasons []Reason `json:"reasons"`
}

// Prune removes the snapshots that no policy keeps and nothing needs. With DryRun it only
// reports them.
func (p *Pruner) Prune(ctx context.Context, c access.Caller, r PruneRequest) (PruneAnswer, error) {
	const op = "library.prune"
	if err := c.Require(access.Manage); err != nil {
		return PruneAnswer{}, err
	}
	users := []string{r.UserID}
	switch {
	case r.All:
		if err := c.Require(access.Administer); err != nil {
			return PruneAnswer{}, err
		}
		var err error
		if users, err = p.records.UsersWithSnapshots(ctx); err != nil {
			return PruneAnswer{}, err
		}
	case r.UserID == "":
		users = []string{c.UserID}
	case !c.MayActFor(r.UserID):
		return PruneAnswer{}, fault.New(fault.Forbidden, op, "user_id: the key may not act for this user")
	}
	return p.prune(ctx, users, r.DryRun)
}

// prune prunes the snapshots of users. When ctx ends, it stops before the next snapshot.
func (p *Pruner) prune(ctx context.Context, users []string, dry bool) (PruneAnswer, error) {
	run := pruneRun{pruner: p, answer: PruneAnswer{DryRun: dry, Removed: []PrunedSnapshot{}, KeptBy: map[Reason]int{}}}
	if dry {
		run.answer.Kept = []KeptSnapshot{}
	}
	for _, userID := range users {
		if err := run.user(ctx, userID); err != nil {
			return run.answer, err
		}
	}
	return run.answer, nil
}

// pruneRun is a prune that is running.
type pruneRun struct {
	pruner *Pruner
	answer PruneAnswer
}

func (r *pruneRun) user(ctx context.Context, userID string) error {
	policy, err := r.pruner.policy(ctx, userID)
	if err != nil {
		return err
	}
	// Look up first what is needed. A session that starts later is safe: remove checks
	// again.
	needed, err := r.pruner.records.NeededSnapshots(ctx, userID)
	if err != nil {
		return err
	}
	rows, _, err := r.pruner.records.Snapshots(ctx, profiles.SnapshotFilter{UserID: userID, OmitReports: true})
	if err != nil {
		return err
	}
	var toRemove []profiles.Snapshot
	keptArchives := map[string]bool{} // archives
	for i, why := range r.pruner.reasons(policy, rows, needed) {
		if len(why) == 0 {
			toRemove = append(toRemove, rows[i])
			continue
		}
		r.keep(rows[i], why)
		keptArchives[rows[i].ArchiveID] = true
	}
	if r.answer.DryRun {
		r.wouldRemove(toRemove, keptArchives)
		return nil
	}
	for _, row := range toRemove {
		if err := r.remove(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// wouldRemove counts what would be removed. An archive is freed if all snapshots that
// name it are removed.
func (r *pruneRun) wouldRemove(toRemove []profiles.Snapshot, keptArchives map[string]bool) {
	for _, row := range toRemove {
		r.removed(row)
		if !keptArchives[row.ArchiveID] {
			r.answer.FreedBytes += row.SizeBytes
			keptArchives[row.ArchiveID] = true // once
		}
	}
}

// remove removes a snapshot, unless something has started to need it.
func (r *pruneRun) remove(ctx context.Context, row profiles.Snapshot) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Timeout, "library.prune", "the prune was interrupted; the snapshots that it removed stay removed")
	}
	freed, err := r.pruner.snapshots.Retire(ctx, row)
	switch {
	case fault.Is(err, fault.SnapshotInUse):
		r.keep(row, []Reason{KeptInUse})
	case fault.Is(err, fault.SnapshotNotFound): // removed by another call
	case err != nil:
		return err
	default:
		r.removed(row)
		r.answer.FreedBytes += freed
	}
	return nil
}

func (r *pruneRun) removed(row profiles.Snapshot) {
	r.answer.RemovedCount++
	if len(r.answer.Removed) < maxPruned {
		r.answer.Removed = append(r.answer.Removed, pruned(row))
	}
}

func (r *pruneRun) keep(row profiles.Snapshot, why []Reason) {
	r.answer.KeptCount++
	for _, reason := range why {
		r.answer.KeptBy[reason]++
	}
	if r.answer.DryRun && len(r.answer.Kept) < maxPruned {
		r.answer.Kept = append(r.answer.Kept, KeptSnapshot{pruned(row), why})
	}
}

func pruned(row profiles.Snapshot) PrunedSnapshot {
	return PrunedSnapshot{ID: row.ID, SessionID: row.SessionID, UserID: row.UserID, CreatedAt: row.CreatedAt, SizeBytes: row.SizeBytes}
}
