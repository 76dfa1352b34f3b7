package library

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// PruneRequest says whose snapshots a prune looks at.
type PruneRequest struct {
	UserID string // "" for the caller's own; else the caller must be allowed to act for it
	All    bool   // everybody's: needs the admin right
	DryRun bool   // only report what would go
}

// PruneAnswer is what a prune removed, or would remove. It is the wire shape.
type PruneAnswer struct {
	DryRun       bool             `json:"dry_run"`
	RemovedCount int              `json:"removed_count"`
	FreedBytes   int64            `json:"freed_bytes"` // of archives that no snapshot names any more
	Removed      []PrunedSnapshot `json:"removed"`     // at most maxPruned
	KeptCount    int              `json:"kept_count"`
	// KeptBy counts the snapshots that each reason keeps; one may have several.
	KeptBy map[Reason]int `json:"kept_by"`
	Kept   []KeptSnapshot `json:"kept"` // of a dry run, at most maxPruned; else nil
}

// maxPruned bounds the snapshots that an answer names. The counts are whole.
const maxPruned = 10_000

// PrunedSnapshot is one that went or would go.
type PrunedSnapshot struct {
	ID        string    `json:"id"`
	SessionID string    `json:"session_id"`
	UserID    string    `json:"user_id"`
	CreatedAt time.Time `json:"created_at"`
	SizeBytes int64     `json:"size_bytes"` // of its archive, which others may share
}

// KeptSnapshot is one that would stay, and why.
type KeptSnapshot struct {
	PrunedSnapshot
	Reasons []Reason `json:"reasons"`
}

// Prune removes the snapshots that no policy keeps and nobody needs, or reports which
// those are.
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
		return PruneAnswer{}, fault.New(fault.Forbidden, op, "user_id: the key does not act for this user")
	}
	return p.prune(ctx, users, r.DryRun)
}

// prune goes through users. It ends between two snapshots when ctx does.
func (p *Pruner) prune(ctx context.Context, users []string, dry bool) (PruneAnswer, error) {
	run := pruning{pruner: p, answer: PruneAnswer{DryRun: dry, Removed: []PrunedSnapshot{}, KeptBy: map[Reason]int{}}}
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

// pruning is a prune that is under way.
type pruning struct {
	pruner *Pruner
	answer PruneAnswer
}

func (r *pruning) user(ctx context.Context, userID string) error {
	policy, err := r.pruner.policy(ctx, userID)
	if err != nil {
		return err
	}
	// What is needed is looked up first: the removal of a snapshot meets a session
	// that begins afterwards.
	needed, err := r.pruner.records.NeededSnapshots(ctx, userID)
	if err != nil {
		return err
	}
	rows, _, err := r.pruner.records.Snapshots(ctx, profiles.SnapshotFilter{UserID: userID, Bare: true})
	if err != nil {
		return err
	}
	var going []profiles.Snapshot
	stay := map[string]bool{} // archives
	for i, why := range r.pruner.reasons(policy, rows, needed) {
		if len(why) == 0 {
			going = append(going, rows[i])
			continue
		}
		r.keep(rows[i], why)
		stay[rows[i].ArchiveID] = true
	}
	if r.answer.DryRun {
		r.wouldRemove(going, stay)
		return nil
	}
	for _, row := range going {
		if err := r.remove(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// wouldRemove counts what would go: an archive is freed where all that name it go.
func (r *pruning) wouldRemove(going []profiles.Snapshot, stay map[string]bool) {
	for _, row := range going {
		r.removed(row)
		if !stay[row.ArchiveID] {
			r.answer.FreedBytes += row.SizeBytes
			stay[row.ArchiveID] = true // once
		}
	}
}

// remove removes a snapshot, unless somebody needs it since.
func (r *pruning) remove(ctx context.Context, row profiles.Snapshot) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Timeout, "library.prune", "it was given up; what was removed is gone")
	}
	freed, err := r.pruner.snapshots.Retire(ctx, row)
	switch {
	case fault.Is(err, fault.SnapshotInUse):
		r.keep(row, []Reason{KeptInUse})
	case fault.Is(err, fault.SnapshotNotFound): // somebody else removed it
	case err != nil:
		return err
	default:
		r.removed(row)
		r.answer.FreedBytes += freed
	}
	return nil
}

func (r *pruning) removed(row profiles.Snapshot) {
	r.answer.RemovedCount++
	if len(r.answer.Removed) < maxPruned {
		r.answer.Removed = append(r.answer.Removed, pruned(row))
	}
}

func (r *pruning) keep(row profiles.Snapshot, why []Reason) {
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
