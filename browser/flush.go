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
	// flushFrom is how much localStorage, in bytes, is waited for. Chrome writes
	// less while it quits; of eight origins with 5 MB each it wrote none.
	flushFrom = 4 << 20
	// flushDeadline bounds that wait, and flushLook is how often the disk is
	// looked at: each look reads what was written.
	flushDeadline = 5 * time.Second
	flushLook     = 100 * time.Millisecond
)

// muchLocal reports whether a reading has so much localStorage that Chrome may
// end before it has written it, or may have: of a page that did not answer
// nobody knows, and no other copy is there.
func muchLocal(doc state.Document) bool {
	n := 0
	for _, area := range doc.Local {
		n += localstorage.Size(area)
	}
	return n >= flushFrom || slices.ContainsFunc(doc.Missed, func(m state.Missed) bool { return m.Component == state.ComponentLocalStorage })
}

// flush makes Chrome write the localStorage of all pages, and waits until it is
// on disk. Where that takes too long Chrome is closed all the same, and what is
// missing then is found by comparison.
func (c closing) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushDeadline)
	defer cancel()
	key, item, err := capture.Commit(ctx, c.driver)
	if err != nil {
		return
	}
	root, err := os.OpenRoot(profile.Path(c.dir.Profile()))
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }() // only a handle
	look := time.NewTicker(flushLook)
	defer look.Stop()
	for !localstorage.Removed(ctx, root.FS(), key, item) {
		select {
		case <-look.C:
		case <-c.process.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}
