package renewal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/settings"
)

// renewalRetry is how long after a check that had an error the next one is made; it doubles with each.
const renewalRetry = 30 * time.Second

// plan is a check that is to be made.
type plan struct {
	userID   string
	every    time.Duration
	check    settings.LoginCheck
	current  profiles.Default
	snapshot profiles.Snapshot
}

// planned returns the next check of a user and when it is due. It depends on the
// catalogue alone: the interval counts from the latest of the last check, the last move
// of the default, and the end of the last session that had it.
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
		return p, now.Add(renewalLook), nil // the settings have just changed, which is told
	}
	p.check = *set.LoginCheck
	p.current, err = k.cfg.Records.Default(ctx, userID)
	if err == nil {
		p.snapshot, err = k.cfg.Records.Snapshot(ctx, p.current.SnapshotID)
	}
	if fault.Is(err, fault.DefaultNotFound) || fault.Is(err, fault.SnapshotNotFound) {
		return p, now.Add(p.early()), nil // a default that comes meanwhile is not due before
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

// due is when the check is to be made. Times in the future do not count: the clock was
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

// early is the shortest interval between two checks.
func (p plan) early() time.Duration { return p.every - p.every/10 }

// jitter is by how much a check comes early, at most a tenth of the interval, so that
// users with one interval drift apart. It is a function of user and time.
func (p plan) jitter(since time.Time) time.Duration {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(p.userID), uint64(since.UnixNano())))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(p.every/10+1))
}
