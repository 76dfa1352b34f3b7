package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/verify"
	"github.com/stasisd/stasis/state"
)

// Verify reads the environment back once the restored tabs have their documents, and
// compares it with what was saved; report has the lines that the restore gave. See
// [verify.Restored.Verify].
func (b *Browser) Verify(ctx context.Context, doc state.Document, report []state.Component) (state.Verification, error) {
	b.mux.Clients.Lull(ctx) // clients come first
	b.background.Wait()     // bounded by restore.SettleDeadline, and by the browser's own end
	r := verify.Restored{Reader: b.reader(), Driver: b.driver, UserDataDir: b.dir.Profile(), Baseline: &b.baseline,
		Unloaded: func(tabs []state.Tab) { b.unloaded.Correct(tabs) }, Given: b.options.Overrides, Now: b.now}
	return r.Verify(ctx, doc, report)
}

// VerifyThawed compares the environment of a parked Chrome that runs again with what
// was read before it was frozen; see [verify.Thawed].
func (b *Browser) VerifyThawed(ctx context.Context, doc state.Document) (state.Verification, error) {
	return verify.Thawed(ctx, b.reader(), b.driver, doc, b.now, func() { b.mux.Clients.Lull(ctx) }) // clients come first
}
