package renewal

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/login"
)

const hour = time.Hour

// Recorded times decide when a check is due; times in the future do not count.
func TestRenewalDue(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	why := "away"
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	for name, test := range map[string]struct {
		moved, used time.Time
		last        login.Outcome
		low, high   time.Duration // from now
	}{
		"a young default":       {at(0), time.Time{}, login.Outcome{}, hour * 9 / 10, hour},
		"used since":            {at(5 * hour), at(hour / 2), login.Outcome{}, hour * 4 / 10, hour / 2},
		"checked since":         {at(5 * hour), at(3 * hour), login.Outcome{CheckedAt: at(hour / 2)}, hour * 4 / 10, hour / 2},
		"long ago":              {at(5 * hour), at(3 * hour), login.Outcome{CheckedAt: at(2 * hour)}, -2 * hour, -1},
		"failed":                {at(5 * hour), at(3 * hour), login.Outcome{CheckedAt: at(0), Error: &why, Failures: 1}, renewalRetry, renewalRetry},
		"failed again":          {at(5 * hour), at(3 * hour), login.Outcome{CheckedAt: at(0), Error: &why, Failures: 3}, 4 * renewalRetry, 4 * renewalRetry},
		"failed for long":       {at(5 * hour), at(3 * hour), login.Outcome{CheckedAt: at(0), Error: &why, Failures: 1 << 40}, hour * 9 / 10, hour},
		"failed before its use": {at(5 * hour), at(0), login.Outcome{CheckedAt: at(hour), Error: &why, Failures: 1}, hour * 9 / 10, hour},
		"the clock was set":     {at(-5 * hour), at(-hour), login.Outcome{CheckedAt: at(-hour)}, -1 << 63, -1},
	} {
		p := plan{userID: "alice", every: hour, current: profiles.Default{MovedAt: test.moved}}
		if got := p.due(test.last, test.used, now).Sub(now); got < test.low || got > test.high {
			t.Errorf("%s: in %s", name, got)
		}
	}
}

// A turn that is far ahead because the clock was set back is due at once.
func TestNext(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := &Renewals{turns: map[string]*Turn{"early": {now.Add(time.Minute)}, "put before": {now.Add(5 * hour)}}}
	if user, due, _ := k.Next(now); user != "put before" || !due.Equal(now) {
		t.Errorf("%s is next, in %s", user, due.Sub(now))
	}
	if user, due, _ := k.Next(now.Add(5 * hour)); user != "early" || due.After(now.Add(time.Minute)) {
		t.Errorf("%s is next", user)
	}
}
