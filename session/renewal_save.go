package session

import (
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
)

// renewalTries is how often each step of a scheduled check's save is tried: the
// token that it has may be the only good one.
const renewalTries = 3

// storable is an error where what a check saves would find no store, or no room in
// it. A site that exchanges tokens is asked only for what can be kept.
func (s *Service) storable(r *renewal) error {
	if err := s.Vault.Health(r.ctx); err != nil {
		return err
	}
	saved, err := s.Vault.Open(r.ctx, library.LocationOf(r.snapshot.UserID, r.snapshot.SessionID), r.snapshot.ID)
	if err != nil {
		return err
	}
	return s.Vault.CheckRoom(r.ctx, 2*saved.Archive.TarSize) // as the save itself will ask
}

// notRenewed is the outcome of a check that was not made because its save would
// have failed.
func (s *Service) notRenewed(r *renewal, what string, err error) LoginOutcome {
	if r.ctx.Err() != nil { // given up
		return LoginOutcome{}
	}
	s.Meter.LoginChecked(CheckFailed)
	s.Log.Warn("a scheduled login check was not made", "owner", profiles.OwnerOf(r.userID), "why", what, "error", err)
	outcome := s.notAsked(err)
	text := what + ": " + fault.MessageOf(err)
	outcome.Error = &text
	return outcome
}

// tried carries a step of a save out, and again where it fails, until somebody
// waits too long for the check, or over is closed, which may be nil.
func (s *Service) tried(r *renewal, over <-chan struct{}, step func() error) error {
	for try := 1; ; try++ {
		err := step()
		if err == nil || try == renewalTries {
			return err
		}
		later := time.NewTimer(s.renewals.between)
		select {
		case <-later.C:
		case <-r.ctx.Done():
			later.Stop()
			return err
		case <-over:
			later.Stop()
			return err
		}
	}
}
