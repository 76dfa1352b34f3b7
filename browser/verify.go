package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/verify"
	"github.com/stasisd/stasis/state"
)

// Verify reads the environment back once the restored tabs have loaded their documents,
// and compares it with what was saved. report holds the lines of the restore. See
// [verify.Environment.Verify].
func (b *Browser) Verify(ctx context.Context, doc state.Document, report []state.Component) (state.Verification, error) {
	b.mux.Clients.WaitIdle(ctx) // clients have priority
	b.background.Wait()         // bounded by restore.SettleDeadline, the unpacking of the caches, and the browser's end
	r := verify.Environment{Reader: b.reader(), Driver: b.driver, UserDataDir: b.dir.Profile(), Baseline: &b.baseline,
		Pending: &b.pendingTabs, Overrides: b.options.Overrides, Now: b.now}
	return r.Verify(ctx, doc, report)
}

// VerifyThawed compares the environment of a thawed Chrome with what was read before it
// was frozen; see [verify.CompareThawed].
func (b *Browser) VerifyThawed(ctx context.Context, doc state.Document) (state.Verification, error) {
	return verify.CompareThawed(ctx, b.reader(), b.driver, doc, b.now, func() { b.mux.Clients.WaitIdle(ctx) }) // clients have priority
}
