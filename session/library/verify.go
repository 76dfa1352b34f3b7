package library

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/state"
)

// maxVerifying is how many snapshots are verified at once: each verification reads a
// whole archive, and none is urgent.
const maxVerifying = 2

// VerifyResult is the result of a verification of a snapshot. It is the wire format.
type VerifyResult struct {
	SnapshotID string       `json:"snapshot_id"`
	OK         bool         `json:"ok"`
	Checked    VerifyChecks `json:"checked"`
	Problems   []Problem    `json:"problems"`
	DurationMS int64        `json:"duration_ms"`
}

// VerifyChecks says which steps of a verification succeeded and what it read. A verification
// stops at the first problem.
type VerifyChecks struct {
	Document    bool  `json:"document"` // its format, its location, its sealed part, and the same archive as in the catalogue
	Archive     bool  `json:"archive"`  // read to its end: its hash, its length, its entries
	State       bool  `json:"state"`    // the state document in it
	Entries     int   `json:"entries"`
	TarBytes    int64 `json:"tar_bytes"`
	StoredBytes int64 `json:"stored_bytes"`
}

// Problem is a reason why a snapshot cannot be restored.
type Problem struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// VerifySnapshot reads all of a snapshot and compares it with everything that its
// document records. Damage is in the result. An error means that the snapshot could not
// be verified.
func (l *Library) VerifySnapshot(ctx context.Context, c access.Caller, id string) (VerifyResult, error) {
	row, err := l.find(ctx, c, id, access.Manage)
	if err != nil {
		return VerifyResult{}, err
	}
	select {
	case l.verifySlots <- struct{}{}:
		defer func() { <-l.verifySlots }()
	case <-ctx.Done():
		return VerifyResult{}, fault.Wrap(ctx.Err(), fault.Timeout, "library.verify", "too many snapshots are being verified; try again later")
	}
	release, err := l.snapshots.Hold(ctx, row, "verified")
	if err != nil {
		return VerifyResult{}, err
	}
	defer release()
	began := l.now()
	found := VerifyResult{SnapshotID: id, Problems: []Problem{}}
	err = l.verifyTo(ctx, row, &found.Checked)
	switch code := fault.CodeOf(err); code {
	case "":
		found.OK = true
	case fault.SnapshotNotFound: // the catalogue names it, so its document is missing
		found.Problems = append(found.Problems, Problem{fault.ArchiveDamaged, "the snapshot's document is missing"})
	case fault.ArchiveDamaged, fault.Unsupported:
		found.Problems = append(found.Problems, Problem{code, fault.MessageOf(err)})
	default:
		return VerifyResult{}, err
	}
	found.DurationMS = l.now().Sub(began).Milliseconds()
	return found, nil
}

// verifyTo verifies a snapshot until the first problem, and records in done how far it
// came.
func (l *Library) verifyTo(ctx context.Context, row profiles.Snapshot, done *VerifyChecks) error {
	saved, err := l.snapshots.open(ctx, row)
	if err != nil {
		return err
	}
	if saved.Archive.ID != row.ArchiveID {
		return fault.New(fault.ArchiveDamaged, "library.verify", "snapshot %s: its document and the catalogue name different archives", row.ID)
	}
	done.Document = true
	files, err := l.snapshots.vault.Peek(ctx, saved, state.FileName)
	if err != nil {
		return err
	}
	done.Archive = true
	done.Entries, done.TarBytes, done.StoredBytes = saved.Archive.Entries, saved.Archive.TarSize, saved.Archive.StoredSize
	_, err = ParseDocument(row.ID, files[state.FileName])
	done.State = err == nil
	return err
}
