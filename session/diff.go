package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/state"
)

// Diff is what changed from one snapshot to another.
type Diff struct {
	From    string         `json:"from"` // snapshot IDs
	To      string         `json:"to"`
	Changes []state.Change `json:"changes"`
	// NotCompared is what the two do not tell the difference of.
	NotCompared []state.Uncompared `json:"not_compared"`
}

// Diff compares two snapshots of one user, by names; with values it needs the
// right to secrets. Those of two users are compared for an admin alone: who
// compares them has mixed something up.
func (s *Service) Diff(ctx context.Context, c access.Caller, from, to string, values bool) (Diff, error) {
	own := func(ctx context.Context, c access.Caller, id string) (profiles.Snapshot, error) {
		return s.ownSnapshot(ctx, c, id, access.Look)
	}
	if values {
		own = s.secretSnapshot
	}
	var docs [2]state.Document
	var rows [2]profiles.Snapshot
	for i, id := range []string{from, to} {
		row, err := own(ctx, c, id)
		if err != nil {
			return Diff{}, err
		}
		rows[i] = row
	}
	if rows[0].UserID != rows[1].UserID && !c.May(access.Administer) {
		return Diff{}, fault.New(fault.UserMismatch, "session.diff", "the snapshots are of different users")
	}
	leave, err := s.readings.Take(ctx, c.UserID)
	if err != nil {
		return Diff{}, err
	}
	defer leave()
	for i, row := range rows {
		doc, err := s.snapshots.Document(ctx, row, "compared")
		if err != nil {
			return Diff{}, err
		}
		docs[i] = doc
	}
	changes, rest, err := state.Diff(ctx, docs[0], docs[1], values)
	if err != nil {
		return Diff{}, givenUp(err)
	}
	return Diff{From: from, To: to, Changes: changes, NotCompared: rest}, nil
}

// givenUp is the error of work whose request has ended; nil for nil.
func givenUp(err error) error {
	return fault.Wrap(err, fault.Timeout, "session.read", "the request was given up")
}
