package api

import (
	"sync"
	"time"
)

const (
	goodKey    = "sk-secret-key"
	goodTicket = "session-ticket"
	viewTicket = "view-ticket"

	controlTicket = "control-ticket" // of agent_url
	sharedTicket  = "shared-ticket"  // of a link with control
	oneTicket     = "connect-ticket"
	liveID        = "live-1"
	endedID       = "ended-1"
	crashedID     = "crashed-1" // its Chrome is being started again
	failedID      = "failed-1"
)

var born = time.Date(2026, 11, 20, 19, 0, 0, 0, time.FixedZone("CET", 3600))

// failing makes the fakes of one rig fail: with err, or with a panic. The fakes record
// their calls under its lock.
type failing struct {
	mu     sync.Mutex
	err    error
	panics bool
}

func (f *failing) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("boom")
	}
	return f.err
}
