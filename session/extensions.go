package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// namedExtensions are those that a create asks for: the session's user's own,
// else the caller's. A third user's are not looked at, whoever asks: anybody can
// give an extension the ID of another.
func (s *Service) namedExtensions(ctx context.Context, c access.Caller, userID string, ids []string) ([]profiles.Extension, error) {
	var named []profiles.Extension
	for _, id := range ids {
		e, err := s.Catalogue.Extension(ctx, userID, id)
		if fault.Is(err, fault.ExtensionNotFound) {
			e, err = s.Catalogue.Extension(ctx, c.UserID, id)
		}
		if fault.Is(err, fault.ExtensionNotFound) {
			return nil, fault.New(fault.ExtensionNotFound, "session.create", "extensions: there is no extension %s; upload it first", id)
		}
		if err != nil {
			return nil, err
		}
		named = append(named, e)
	}
	return named, nil
}
