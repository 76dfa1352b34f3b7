package browser

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/state"
)

const (
	// flushFrom is the amount of localStorage, in bytes, from which a close waits until
	// Chrome has written it. Chrome writes less than this while it quits; of eight origins
	// with 5 MB each it wrote none.
	flushFrom = 4 << 20
	// flushDeadline bounds that wait. flushPoll is the time between two checks of the disk.
	// Each check reads what was written.
	flushDeadline = 5 * time.Second
	flushPoll     = 100 * time.Millisecond
)

// needsFlush reports whether a document has so much localStorage that Chrome may exit
// before it has written it. It is also true if a page did not answer: its amount is
// unknown, and there is no other copy.
func needsFlush(doc state.Document) bool {
	n := 0
	for _, area := range doc.Local {
		n += localstorage.Size(area)
	}
	return n >= flushFrom || slices.ContainsFunc(doc.Missed, func(m state.Missed) bool { return m.Component == state.ComponentLocalStorage })
}

// flush makes Chrome write the localStorage of all pages and waits until it is on disk.
// If that takes too long, done is false, and Chrome is closed anyway. The comparison after the
// close then finds what is missing.
func (c closing) flush(ctx context.Context) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, flushDeadline)
	defer cancel()
	key, item, err := capture.Commit(ctx, c.driver)
	if err != nil {
		return false
	}
	root, err := os.OpenRoot(profile.Path(c.dir.Profile()))
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }() // only a handle
	poll := time.NewTicker(flushPoll)
	defer poll.Stop()
	for !localstorage.Removed(ctx, root.FS(), key, item) {
		select {
		case <-poll.C:
		case <-c.process.Done():
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}
