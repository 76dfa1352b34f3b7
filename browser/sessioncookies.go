package browser

import (
	"context"
	"slices"

	"github.com/stasisd/stasis/browser/apply"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// addSessionCookies lays session cookies down where the jar that the profile
// brings back has none: the shell keeps them in memory only, and deletes those
// that full Chrome left in the profile.
func (b *Browser) addSessionCookies(ctx context.Context, doc state.Document) error {
	all := doc.Cookies
	switch {
	case doc.Complete && doc.Datadir != state.DatadirClean, b.baseline.Broken.Cookies:
		return nil // the whole jar has been laid down
	case !doc.Complete && b.shell():
		all = b.baseline.Found.Cookies
	case !b.shell() && doc.Chrome.Engine != EngineShell:
		return nil
	}
	cookies := slices.DeleteFunc(slices.Clone(all), func(c state.Cookie) bool { return !c.Session || c.Opaque })
	if len(cookies) == 0 {
		return nil
	}
	// What is refused is not in the jar, and its report line says so.
	_, err := apply.AddCookies(ctx, b.driver, cookies)
	return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the session cookies could not be laid down")
}
