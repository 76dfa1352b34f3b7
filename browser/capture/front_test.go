package capture

import (
	"testing"

	"github.com/chromedp/cdproto/target"
)

// pausedConn is a Conn that knows which pages clients keep paused, and nothing else.
type pausedConn struct {
	Conn
	paused map[target.ID]bool
}

func (c pausedConn) Paused(id target.ID) bool { return c.paused[id] }

// A page that a client keeps paused is left out, unless there is no other.
func TestPausedPagesAreNotInFront(t *testing.T) {
	pages := []*target.Info{{TargetID: "opener"}, {TargetID: "pop-up"}}
	if got := running(pausedConn{paused: map[target.ID]bool{"pop-up": true}}, pages); len(got) != 1 || got[0] != pages[0] {
		t.Errorf("%d pages run", len(got))
	}
	if got := running(pausedConn{paused: map[target.ID]bool{"opener": true, "pop-up": true}}, pages); len(got) != 2 {
		t.Errorf("all pages are paused: %d are left", len(got))
	}
}
