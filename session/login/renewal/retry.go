package renewal

import (
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
)

// renewalTries is how often each step of a scheduled check's save is tried, because its
// token may be the only valid one.
const renewalTries = 3

// checkStore returns an error if the store could not take what a check saves. It is called
// before the site is opened, because a site that rotates tokens would replace the stored
// one.
func (k *Renewals) checkStore(r *Renewal) error {
	if err := k.cfg.Archives.Health(r.ctx); err != nil {
		return err
	}
	saved, err := k.cfg.Archives.Open(r.ctx, library.LocationOf(r.snapshot.UserID, r.snapshot.SessionID), r.snapshot.ID)
	if err != nil {
		return err
	}
	return k.cfg.Archives.CheckSpace(r.ctx, 2*saved.Archive.TarSize) // as the save itself will check
}

// notRenewed returns the outcome of a check that was not made because its save would have
// failed.
func (k *Renewals) notRenewed(r *Renewal, what string, err error) login.Outcome {
	if r.ctx.Err() != nil { // abandoned
		return login.Outcome{}
	}
	k.cfg.Meter.LoginChecked(login.Failed)
	k.cfg.Log.Warn("a scheduled login check was not made", "owner", profiles.OwnerOf(r.userID), "why", what, "error", err)
	outcome := login.NotChecked(k.cfg.Now(), err)
	text := what + ": " + fault.MessageOf(err)
	outcome.Error = &text
	return outcome
}

// retried calls a step of a save and calls it again if it fails. It stops when a create has
// waited too long for the check, or when over is closed. over may be nil.
func (k *Renewals) retried(r *Renewal, over <-chan struct{}, step func() error) error {
	for try := 1; ; try++ {
		err := step()
		if err == nil || try == renewalTries {
			return err
		}
		later := time.NewTimer(k.cfg.Between)
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
