package renewal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/settings"
)

// renewalRetry is the time to the next check after one with an error; it doubles with
// each further error.
const renewalRetry = 30 * time.Second

// plan is a check that will be made.
type plan struct {
	userID   string
	every    time.Duration
	check    settings.LoginCheck
	egress   browser.Egress
	current  profiles.Default
	snapshot profiles.Snapshot
}

// planned returns the next check of a user and when it is due. Only the catalogue
// decides: the interval starts at the latest of the last check, the last move of the
// default, and the end of the last session that had it.
func (k *Renewals) planned(ctx context.Context, userID string) (p plan, at time.Time, err error) {
	now := k.cfg.Now()
	user, err := k.cfg.Records.User(ctx, userID)
	if err != nil {
		return p, at, err
	}
	set, err := settings.Of(user)
	if err != nil {
		return p, at, err
	}
	p.userID, p.every = userID, set.CheckEvery()
	if p.every == 0 {
		return p, now.Add(maxLookInterval), nil // a change of the settings wakes the schedule
	}
	p.check, p.egress = *set.LoginCheck, set.Egress.Limits()
	p.current, err = k.cfg.Records.Default(ctx, userID)
	if err == nil {
		p.snapshot, err = k.cfg.Records.Snapshot(ctx, p.current.SnapshotID)
	}
	if fault.Is(err, fault.DefaultNotFound) || fault.Is(err, fault.SnapshotNotFound) {
		return p, now.Add(p.minInterval()), nil // a default that is made meanwhile is not due earlier
	}
	if err != nil {
		return p, at, err
	}
	used, err := k.cfg.Records.LastUsed(ctx, userID, p.snapshot.ID)
	if err != nil {
		return p, at, err
	}
	return p, p.due(login.LastOutcome(user), used, now), nil
}

// due returns when the check is to be made. It ignores times in the future: the clock was
// set back.
func (p plan) due(last login.Outcome, used, now time.Time) time.Time {
	var since time.Time
	for _, t := range []time.Time{p.current.MovedAt, last.CheckedAt, used} {
		if t.After(since) && !t.After(now) {
			since = t
		}
	}
	wait := p.every - p.jitter(since)
	if last.Error != nil && since.Equal(last.CheckedAt) {
		wait = min(wait, renewalRetry<<min(max(last.Failures-1, 0), 20))
	}
	return since.Add(wait)
}

// minInterval returns the shortest interval between two checks.
func (p plan) minInterval() time.Duration { return p.every - p.every/10 }

// jitter returns how much earlier than the interval a check is made, at most a tenth. It
// keeps users with the same interval apart. It depends only on the user and the time.
func (p plan) jitter(since time.Time) time.Duration {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(p.userID), uint64(since.UnixNano())))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(p.every/10+1))
}
