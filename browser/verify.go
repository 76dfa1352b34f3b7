package browser

import (
	"context"
	"fmt"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
)

// Verify reads the environment back once the restored tabs have their
// documents, and compares it with what was saved: cookies, and the keys of
// every storage area that is open again. It names what is missing, never a
// value; what the site has changed is there and not missing. What a site
// removes by itself as it loads cannot be told from what did not come back.
func (b *Browser) Verify(ctx context.Context, doc state.Document) ([]string, error) {
	b.background.Wait() // bounded by settleDeadline, and by the browser's own end
	now, err := capture.Read(ctx, b.driver)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, line := range state.CompareCookies(doc.Cookies, now.Cookies, b.now(), nil) {
		if line.Dropped > 0 {
			missing = append(missing, fmt.Sprintf("%s %s: %d of %d are not there any more", line.Name, line.Origin, line.Dropped, line.Saved))
		}
	}
	open := map[string]state.Area{}
	for _, area := range now.Local {
		open[area.StorageKey] = area
	}
	for _, area := range doc.Local {
		if is, ok := open[area.StorageKey]; ok {
			if n := area.Missing(is); n > 0 {
				missing = append(missing, fmt.Sprintf("%s %s: %d of %d keys are not there any more",
					state.ComponentLocalStorage, area.StorageKey, n, len(area.Items)))
			}
		}
	}
	return append(missing, missingInTabs(doc.Tabs, now.Tabs)...), nil
}

// missingInTabs compares the session storage of tabs that show the same URL as
// when they were saved; of several such tabs the best match counts.
func missingInTabs(saved, open []state.Tab) []string {
	var missing []string
	for _, tab := range saved {
		for _, area := range tab.Session {
			least := -1
			for _, other := range open {
				for _, is := range other.Session {
					if other.URL == tab.URL && is.StorageKey == area.StorageKey {
						if n := area.Missing(is); least < 0 || n < least {
							least = n
						}
					}
				}
			}
			if least > 0 {
				missing = append(missing, fmt.Sprintf("%s %s: %d of %d keys are not there any more",
					state.ComponentSessionStorage, area.StorageKey, least, len(area.Items)))
			}
		}
	}
	return missing
}
