package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/quota"
)

// Only callers that ask too often wait, no longer than they stay, and not all of very many.
func TestSlowdown(t *testing.T) {
	tooOften := quota.Exceeded{Name: quota.Requests}
	tests := map[string]struct {
		code     fault.Code
		exceeded quota.Exceeded
		leave    time.Duration // 0: the caller stays
		others   int           // that wait
		want     time.Duration
	}{
		"the rate of a user or a key": {fault.QuotaExceeded, tooOften, 0, 0, refusalDelay},
		"wrong keys":                  {fault.TooManyAttempts, quota.Exceeded{}, 0, mostDelayed - 1, refusalDelay},
		"another quota":               {fault.QuotaExceeded, quota.Exceeded{Name: quota.Sessions}, 0, 0, 0},
		"another error":               {fault.SessionNotFound, quota.Exceeded{}, 0, 0, 0},
		"a caller that leaves":        {fault.QuotaExceeded, tooOften, refusalDelay / 2, 0, refusalDelay / 2},
		"one of very many":            {fault.QuotaExceeded, tooOften, 0, mostDelayed, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if test.leave > 0 {
					time.AfterFunc(test.leave, leave)
				}
				s := newSlowdown()
				for range test.others {
					go s.wait(ctx, test.code, test.exceeded)
				}
				synctest.Wait()
				began := time.Now()
				s.wait(ctx, test.code, test.exceeded)
				if waited := time.Since(began); waited != test.want {
					t.Errorf("waited %s, want %s", waited, test.want)
				}
			})
		})
	}
}
