package session

import (
	"context"

	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// autosaveAdapter gives the maker of automatic checkpoints a live session.
type autosaveAdapter struct {
	l       *liveSession
	persist bool // the default moves to the automatic checkpoints
}

var _ autosave.Session = autosaveAdapter{}

// autosave returns the maker of the session's automatic checkpoints.
func (l *liveSession) autosave(set autosave.Settings, persist bool) *autosave.Saver {
	return autosave.New(set, autosaveAdapter{l, persist}, l.svc.deps.Now, l.svc.deps.Log.With("session", l.id))
}

// AllDisconnected receives a value when the last client has disconnected.
func (s autosaveAdapter) AllDisconnected() <-chan struct{} { return s.l.disconnected }

// TurnEnded receives a value after a message that ends a turn of the conversation.
func (s autosaveAdapter) TurnEnded() <-chan struct{} { return s.l.turnEnded }

// Done is closed when the session is no longer live.
func (s autosaveAdapter) Done() <-chan struct{} { return s.l.done }

// Browser returns the browser for a reading, or nil while it is frozen or a checkpoint is
// under way.
func (s autosaveAdapter) Browser(ctx context.Context) autosave.Browser {
	var chrome browsers.Chrome
	_ = s.l.ask(ctx, func() error { // an ended session has no browser
		if s.l.usable() == nil && s.l.checkpoint == nil {
			chrome = s.l.chrome
		}
		return nil
	})
	if chrome == nil || chrome.Frozen() {
		return nil
	}
	return chrome
}

// Save makes a checkpoint that does not count as use of the session.
func (s autosaveAdapter) Save(ctx context.Context) (snapshotID string, stored bool, err error) {
	defer func() { s.l.audit.checkpoint(snapshotID, stored, err) }()
	var chrome browsers.Chrome
	if err := s.l.ask(ctx, func() error { chrome = s.l.chrome; return nil }); err != nil || chrome != nil && chrome.Frozen() {
		return "", false, autosave.ErrFrozen
	}
	c := s.l.save(ctx, request.Checkpoint{Auto: true, SaveAsDefault: s.persist, Conflict: save.Keep}, nil)
	if c.Err != nil {
		return "", false, c.Err
	}
	return c.Answer.Snapshot.ID, !c.Answer.Unchanged, save.ProblemError(c.Problem, s.persist)
}

// SetStatus records the outcome of the last checkpoint.
func (s autosaveAdapter) SetStatus(ctx context.Context, now autosave.Status) {
	// If the session has ended meanwhile, there is nothing to update.
	_ = s.l.ask(ctx, func() error { s.l.auto = &now; return nil })
}

// Prune removes the automatic checkpoints except the newest keep ones.
func (s autosaveAdapter) Prune(ctx context.Context, keep int) {
	s.l.svc.pruner.PruneCheckpoints(ctx, s.l.id, keep)
}
