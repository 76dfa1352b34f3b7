package browser

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Capture reads the environment's state over CDP (see capture.Read) and marks the
// document as that of a live Chrome.
func (b *Browser) Capture(ctx context.Context) (state.Document, error) {
	if err := b.tabs.closeLeftover(ctx); err != nil {
		return state.Document{}, err
	}
	defer b.passkeys.pause()()
	b.passkeys.read(ctx)
	began := b.now().UTC()
	doc, err := capture.Read(ctx, b.reader())
	if err != nil {
		return doc, err
	}
	byURL := b.pendingTabs.Complete(doc.Tabs)
	if err := b.extensions.capture(ctx, &doc); err != nil {
		doc.Complete = false
		return doc, err
	}
	b.unflushed.Store(needsFlush(doc))
	doc.CapturedAt, doc.ReadUntil = began, b.now().UTC()
	doc.Datadir = state.DatadirLive
	doc.Chrome = state.Chrome{Version: b.version, Engine: b.Engine(), UserAgent: b.userAgent, Flags: b.process.Flags()}
	doc.TabsByURL = byURL
	if b.shell() {
		doc.TabsByURL = true // the profile's session files, if any, are older
	}
	doc.Overrides, doc.Permissions = b.options.Overrides, b.mux.Permissions.Granted()
	b.passkeys.read(ctx)
	doc.Passkeys, _ = b.Passkeys()
	return doc, nil
}

// Cookies reads only the cookies.
func (b *Browser) Cookies(ctx context.Context) ([]state.Cookie, error) {
	jar, err := capture.Cookies(ctx, b.driver)
	return jar, fault.Wrap(err, fault.BrowserFailed, "browser.cookies", "the cookies could not be read")
}

// reader returns the connection for code that attaches to pages to read them.
func (b *Browser) reader() capture.Conn {
	if b.passkeys.authenticators == nil {
		return b.driver
	}
	return b.passkeys.authenticators.Reader()
}

// Storage is what scripts can read of an environment's origins.
type Storage = capture.Storage

// storageDeadline bounds the reading of an environment's storage by scripts.
const storageDeadline = 60 * time.Second

// Storage reads the cookies, and localStorage and IndexedDB of the origins, without a
// request to their sites. No page of the environment should be open.
func (b *Browser) Storage(ctx context.Context, origins []string) (Storage, error) {
	ctx, cancel := context.WithTimeout(ctx, storageDeadline)
	defer cancel()
	return capture.ReadStorage(ctx, b.driver, origins)
}
