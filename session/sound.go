package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
)

// maxVerifying is how many snapshots are verified at once: each reads a whole
// archive, and none is in a hurry.
const maxVerifying = 2

// Soundness is what a verification of a snapshot found. It is the wire shape.
type Soundness struct {
	SnapshotID string    `json:"snapshot_id"`
	OK         bool      `json:"ok"`
	Checked    Checked   `json:"checked"`
	Problems   []Problem `json:"problems"`
	DurationMS int64     `json:"duration_ms"`
}

// Checked is how far a verification came, and what it read: a problem keeps it
// from what comes after.
type Checked struct {
	Document    bool  `json:"document"` // its form, its place, its sealed part, and that the catalogue names the same archive
	Archive     bool  `json:"archive"`  // to its end: its hash, its length, its entries
	State       bool  `json:"state"`    // the state document in it
	Entries     int   `json:"entries"`
	TarBytes    int64 `json:"tar_bytes"`
	StoredBytes int64 `json:"stored_bytes"`
}

// Problem is why a snapshot cannot be restored.
type Problem struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// VerifySnapshot reads all of a snapshot and compares it with everything that
// its document binds. What is wrong with it is no error but the answer; an error
// says that it could not be verified.
func (s *Service) VerifySnapshot(ctx context.Context, c access.Caller, id string) (Soundness, error) {
	row, err := s.ownSnapshot(ctx, c, id, access.Manage)
	if err != nil {
		return Soundness{}, err
	}
	select {
	case s.verifying <- struct{}{}:
		defer func() { <-s.verifying }()
	case <-ctx.Done():
		return Soundness{}, fault.Wrap(ctx.Err(), fault.Timeout, "session.verify_snapshot", "it was given up before its turn came")
	}
	release, err := s.snapshots.Hold(ctx, row, "verified")
	if err != nil {
		return Soundness{}, err
	}
	defer release()
	began := s.Now()
	found := Soundness{SnapshotID: id, Problems: []Problem{}}
	err = s.verifyTo(ctx, row, &found.Checked)
	switch code := fault.CodeOf(err); code {
	case "":
		found.OK = true
	case fault.SnapshotNotFound: // the catalogue names it
		found.Problems = append(found.Problems, Problem{fault.ArchiveDamaged, "its document is missing"})
	case fault.ArchiveDamaged, fault.Unsupported:
		found.Problems = append(found.Problems, Problem{code, fault.MessageOf(err)})
	default:
		return Soundness{}, err
	}
	found.DurationMS = s.Now().Sub(began).Milliseconds()
	return found, nil
}

func (s *Service) verifyTo(ctx context.Context, row profiles.Snapshot, done *Checked) error {
	saved, err := s.Vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
	if err != nil {
		return err
	}
	if saved.Archive.ID != row.ArchiveID {
		return fault.New(fault.ArchiveDamaged, "session.verify_snapshot", "snapshot %s: its document and the catalogue name different archives", row.ID)
	}
	done.Document = true
	files, err := s.Vault.Peek(ctx, saved, state.FileName)
	if err != nil {
		return err
	}
	done.Archive = true
	done.Entries, done.TarBytes, done.StoredBytes = saved.Archive.Entries, saved.Archive.TarSize, saved.Archive.StoredSize
	_, err = library.ParseDocument(row.ID, files[state.FileName])
	done.State = err == nil
	return err
}
