package browser

import (
	"context"
	"sync"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/fault"
)

// leftover are the tabs of the empty profile that an environment was loaded
// beside. Clients never see them. That they close keeps Chrome from all else for
// as long as a third of a restore takes (its window goes, and the profile with
// it), so it waits for a moment in which nobody asks for anything.
type leftover struct {
	mu   sync.Mutex
	tabs []*target.Info
}

// alone returns once the environment's own tabs are all that Chrome has: whoever
// looks at the tabs asks for that first.
func (b *Browser) alone(ctx context.Context) error {
	l := &b.leftover
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.tabs) > 0 {
		if err := b.closeTab(ctx, l.tabs[0].TargetID); err != nil {
			return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the empty profile could not be closed")
		}
		l.tabs = l.tabs[1:]
	}
	return nil
}
