package session

import (
	"context"
	"slices"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// Why Chrome is started again.
const (
	failedSave = "a save that failed"
	aCrash     = "a crash"
)

// startAgain starts another Chrome on a session's own datadir, with what was
// read of it last, and reports what it brought back.
func (s *Service) startAgain(ctx context.Context, rec profiles.Session, dir *browser.Dir, doc state.Document, o browser.Options, why string) (restore.Started, error) {
	notes, err := agent.NotesToSave(ctx, s.Catalogue, rec)
	if err != nil {
		return restore.Started{}, err
	}
	doc.Missed = append(slices.Clone(doc.Missed), inMemoryOnly(doc, o.Extensions)...)
	return s.restorer.Reopen(ctx, restore.Reopening{SessionID: rec.ID, Dir: dir, Document: doc, Options: o, Notes: notes, Why: why})
}
