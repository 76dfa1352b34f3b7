package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/session/access"
)

// Share makes a shared link to the live view of a session, and its ticket; see
// [access.LiveSession.Share].
func (s *Service) Share(ctx context.Context, c access.Caller, id string, control bool, life time.Duration) (_ access.Link, ticket string, err error) {
	l, err := s.running(ctx, c, id, access.Look)
	if err != nil {
		return access.Link{}, "", err
	}
	return l.rights.Share(ctx, s.deps.Keys, c, control, life)
}

// Links lists the shared links of a session that have not ended.
func (s *Service) Links(ctx context.Context, c access.Caller, id string) ([]access.Link, error) {
	l, err := s.running(ctx, c, id, access.Look)
	if err != nil {
		return nil, err
	}
	return l.rights.Shared(ctx, s.deps.Keys, c)
}

// Revoke ends a shared link of a session and disconnects its viewers.
func (s *Service) Revoke(ctx context.Context, c access.Caller, id, linkID string) error {
	l, err := s.running(ctx, c, id, access.Look)
	if err != nil {
		return err
	}
	return l.rights.Revoke(c, linkID)
}
