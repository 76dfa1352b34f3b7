package mux

import (
	"testing"
	"testing/synctest"
	"time"
)

// Background work begins when clients pause, or at the deadline if they do not.
func TestWaitIdle(t *testing.T) {
	for _, test := range []struct {
		name           string
		busy           time.Duration
		earliest, last time.Duration
	}{
		{"no client", 0, firstIdlePeriod, firstIdlePeriod},
		{"until the client pauses", time.Second, time.Second, time.Second + 2*idlePeriod},
		{"a client that never pauses", time.Hour, idleDeadline, idleDeadline},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clients := newClients(nil, make(chan struct{}))
				began, over := time.Now(), make(chan struct{})
				go func() { // a client
					for time.Since(began) < test.busy {
						clients.messages.Add(1)
						select {
						case <-time.After(idlePeriod / 3):
						case <-over:
							return
						}
					}
				}()
				clients.WaitIdle(t.Context())
				if took := time.Since(began); took < test.earliest || took > test.last {
					t.Errorf("idle after %v, want between %v and %v", took, test.earliest, test.last)
				}
				close(over)
			})
		})
	}
}
