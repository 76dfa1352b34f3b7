package library

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/state"
)

// Diff is what changed between two snapshots.
type Diff struct {
	From    string         `json:"from"` // snapshot IDs
	To      string         `json:"to"`
	Changes []state.Change `json:"changes"`
	// NotCompared is what cannot be compared from the two documents.
	NotCompared []state.Uncompared `json:"not_compared"`
}

// Diff compares two snapshots of one user by names. If values is set it compares values
// too, which needs the right to secrets. Only an admin may compare snapshots of two
// users.
func (l *Library) Diff(ctx context.Context, c access.Caller, from, to string, values bool) (Diff, error) {
	find := func(id string) (profiles.Snapshot, error) { return l.find(ctx, c, id, access.Look) }
	if values {
		find = func(id string) (profiles.Snapshot, error) { return l.findSecret(ctx, c, id) }
	}
	var docs [2]state.Document
	var rows [2]profiles.Snapshot
	for i, id := range []string{from, to} {
		row, err := find(id)
		if err != nil {
			return Diff{}, err
		}
		rows[i] = row
	}
	if rows[0].UserID != rows[1].UserID && !c.May(access.Administer) {
		return Diff{}, fault.New(fault.UserMismatch, "library.diff", "the snapshots belong to different users; only an admin may compare them")
	}
	leave, err := l.readings.Take(ctx, c.UserID)
	if err != nil {
		return Diff{}, err
	}
	defer leave()
	for i, row := range rows {
		doc, err := l.snapshots.Document(ctx, row, "compared")
		if err != nil {
			return Diff{}, err
		}
		docs[i] = doc
	}
	changes, rest, err := state.Diff(ctx, docs[0], docs[1], values)
	if err != nil {
		return Diff{}, requestEnded(err)
	}
	return Diff{From: from, To: to, Changes: changes, NotCompared: rest}, nil
}
