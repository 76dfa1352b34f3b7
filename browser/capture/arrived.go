package capture

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/target"
)

// arrivalDeadline bounds how long tabs are read again because their pages move. It is the time
// that a busy machine needs to show a page in another process. arrivalPause is the time between
// two readings.
const (
	arrivalDeadline = 2 * time.Second
	arrivalPause    = 25 * time.Millisecond
)

// readArrived is readTabs, but it reads a tab again if another page came to it meanwhile.
// While Chromium 156 moves a tab to another process, the tab has no address and no history, and
// its frames have no storage. A reading would lack them, or mix two pages. Of the tabs that are
// visible, readArrived leaves one active.
func readArrived(ctx context.Context, conn Conn, targets []*target.Info) []reading {
	readings := readTabs(ctx, conn, targets)
	waiting, cancel := context.WithTimeout(ctx, arrivalDeadline)
	defer cancel()
	pause := time.NewTicker(arrivalPause)
	defer pause.Stop()
	for again := moving(readings); len(again) > 0 && waiting.Err() == nil; again = moving(readings) {
		select {
		case <-pause.C:
			readMoving(ctx, conn, again)
		case <-waiting.Done():
		}
	}
	keepOneActive(conn, readings)
	return readings
}

// moving returns the tabs, by their ID, to which another page came while they were read. A tab
// that has an address is moving only for so long: Chrome may refuse something for another reason.
func moving(readings []reading) map[string]*reading {
	tabs := map[string]*reading{}
	for i, r := range readings {
		if r.moved && (r.tab.URL == "" || r.times < rereads) {
			tabs[r.tab.TargetID] = &readings[i]
		}
	}
	return tabs
}

// readMoving reads tabs again, and keeps what was read of a tab that has closed.
func readMoving(ctx context.Context, conn Conn, tabs map[string]*reading) {
	targets, _, err := split(ctx, conn)
	if err != nil {
		return // the next command to Chrome fails too
	}
	targets = slices.DeleteFunc(targets, func(t *target.Info) bool {
		return t.Type == "page" && tabs[string(t.TargetID)] == nil
	})
	for _, r := range tabs {
		r.moved = false
	}
	for _, again := range readTabs(ctx, conn, targets) {
		r := tabs[again.tab.TargetID]
		again.times = r.times
		if again.tab.URL != "" {
			again.times++
		}
		*r = again
	}
}

// keepOneActive leaves one of the visible tabs active: the one that came to the front
// last. While clients are connected all tabs are visible.
func keepOneActive(conn Conn, readings []reading) {
	var visible []*target.Info
	for _, r := range readings {
		if r.tab.Active && !r.temporary {
			visible = append(visible, &target.Info{TargetID: target.ID(r.tab.TargetID)})
		}
	}
	front := lastShown(conn, visible)
	for i := range readings {
		readings[i].tab.Active = front != nil && readings[i].tab.TargetID == string(front.TargetID)
	}
}
