package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// PruneRequest says whose snapshots are held against their policies.
type PruneRequest struct {
	UserID string // "" for the caller's own; else the caller must be allowed to act for it
	All    bool   // everybody's: needs the admin right
	DryRun bool   // only tell what would go
}

// PruneAnswer tells what a prune removed, or would remove. It is the wire shape.
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

// Prune removes the snapshots that no policy and nobody's need keeps, or tells
// which those are.
func (s *Service) Prune(ctx context.Context, c access.Caller, r PruneRequest) (PruneAnswer, error) {
	const op = "session.prune"
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
		if users, err = s.Catalogue.UsersWithSnapshots(ctx); err != nil {
			return PruneAnswer{}, err
		}
	case r.UserID == "":
		users = []string{c.UserID}
	case !c.MayActFor(r.UserID):
		return PruneAnswer{}, fault.New(fault.Forbidden, op, "user_id: the key does not act for this user")
	}
	return s.prune(ctx, users, r.DryRun)
}

// prune goes through users. It ends between two snapshots when ctx does.
func (s *Service) prune(ctx context.Context, users []string, dry bool) (PruneAnswer, error) {
	p := pruning{svc: s, answer: PruneAnswer{DryRun: dry, Removed: []PrunedSnapshot{}, KeptBy: map[Reason]int{}}}
	if dry {
		p.answer.Kept = []KeptSnapshot{}
	}
	for _, userID := range users {
		if err := p.user(ctx, userID); err != nil {
			return p.answer, err
		}
	}
	return p.answer, nil
}

// pruning is a prune that is under way.
type pruning struct {
	svc    *Service
	answer PruneAnswer
}

func (p *pruning) user(ctx context.Context, userID string) error {
	policy, err := p.svc.retention(ctx, userID)
	if err != nil {
		return err
	}
	// What is needed is looked up first: a session that begins afterwards is met
	// when its snapshot is to go.
	needed, err := p.svc.Catalogue.NeededSnapshots(ctx, userID)
	if err != nil {
		return err
	}
	rows, _, err := p.svc.Catalogue.Snapshots(ctx, profiles.SnapshotFilter{UserID: userID, Bare: true})
	if err != nil {
		return err
	}
	var going []profiles.Snapshot
	stay := map[string]bool{} // archives
	for i, why := range p.svc.reasons(policy, rows, needed) {
		if len(why) == 0 {
			going = append(going, rows[i])
			continue
		}
		p.keep(rows[i], why)
		stay[rows[i].ArchiveID] = true
	}
	if p.answer.DryRun {
		p.tell(going, stay)
		return nil
	}
	for _, row := range going {
		if err := p.remove(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// retention is the user's own policy, else the daemon's; nil where there is none.
func (s *Service) retention(ctx context.Context, userID string) (*Retention, error) {
	set, err := s.settings(ctx, userID)
	if err != nil || set.Retention != nil {
		return set.Retention, err
	}
	return s.cfg.Retention, nil
}

// tell counts what would go: an archive is freed where all that name it go.
func (p *pruning) tell(going []profiles.Snapshot, stay map[string]bool) {
	for _, row := range going {
		p.removed(row)
		if !stay[row.ArchiveID] {
			p.answer.FreedBytes += row.SizeBytes
			stay[row.ArchiveID] = true // once
		}
	}
}

// remove removes one, unless somebody has come to need it since.
func (p *pruning) remove(ctx context.Context, row profiles.Snapshot) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.Timeout, "session.prune", "it was given up; what was removed is gone")
	}
	freed, err := p.svc.snapshots.Retire(ctx, row)
	switch {
	case fault.Is(err, fault.SnapshotInUse):
		p.keep(row, []Reason{KeptInUse})
	case fault.Is(err, fault.SnapshotNotFound): // somebody else removed it
	case err != nil:
		return err
	default:
		p.removed(row)
		p.answer.FreedBytes += freed
	}
	return nil
}

func (p *pruning) removed(row profiles.Snapshot) {
	p.answer.RemovedCount++
	if len(p.answer.Removed) < maxPruned {
		p.answer.Removed = append(p.answer.Removed, pruned(row))
	}
}

func (p *pruning) keep(row profiles.Snapshot, why []Reason) {
	p.answer.KeptCount++
	for _, reason := range why {
		p.answer.KeptBy[reason]++
	}
	if p.answer.DryRun && len(p.answer.Kept) < maxPruned {
		p.answer.Kept = append(p.answer.Kept, KeptSnapshot{pruned(row), why})
	}
}

func pruned(row profiles.Snapshot) PrunedSnapshot {
	return PrunedSnapshot{ID: row.ID, SessionID: row.SessionID, UserID: row.UserID, CreatedAt: row.CreatedAt, SizeBytes: row.SizeBytes}
}
