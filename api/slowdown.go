package api

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/quota"
)

// A caller beyond its rate waits refusalDelay for the answer that says so. Most callers that
// ignore Retry-After wait for one answer before they ask again, and would otherwise keep a
// processor busy with refusals. mostDelayed limits the answers that wait, and with them what
// they hold in memory: more are answered at once.
const (
	refusalDelay = 250 * time.Millisecond
	mostDelayed  = 1000
)

// slowdown delays answers to callers beyond their rate. It is safe for concurrent use.
type slowdown chan struct{}

func newSlowdown() slowdown { return make(slowdown, mostDelayed) }

// wait waits if the error says that the caller asks too often. It returns early when the
// caller has gone.
func (s slowdown) wait(ctx context.Context, code fault.Code, exceeded quota.Exceeded) {
	if code != fault.TooManyAttempts && exceeded.Name != quota.Requests {
		return
	}
	select {
	case s <- struct{}{}:
	default:
		return
	}
	defer func() { <-s }()
	timer := time.NewTimer(refusalDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
