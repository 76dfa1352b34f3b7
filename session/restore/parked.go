package restore

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// ThawDeadline is how long a frozen Chrome may take to answer after a thaw. It
// takes milliseconds, and seconds on a busy machine.
const ThawDeadline = 10 * time.Second

// Parked is the frozen Chrome of a memory snapshot.
type Parked struct {
	browsers.Chrome
	Document   state.Document // as read before Chrome was frozen
	Extensions []state.Extension
	Partial    bool   // it has only some origins
	Notes      *Notes // saved with it; nil: none
	// Clear removes its run directory.
	Clear func(*browser.Dir)
}

// Kill ends the Chrome and removes its run directory.
func (p *Parked) Kill(ctx context.Context) error {
	err := p.Chrome.Kill(ctx)
	p.Clear(p.Dir())
	return err
}

// takeParked takes the snapshot's parked Chrome and thaws it. If it cannot serve the
// request, takeParked returns nil and the reason.
func (r *Restorer) takeParked(ctx context.Context, q Request, row profiles.Snapshot) (_ *Parked, why string) {
	parked, ok, why := r.ready.TakeParked(row.ID, func(p *Parked) string {
		passkeys, enabled := p.Passkeys()
		return mismatch("parked", readyChrome{engine: p.Engine(), overrides: p.Document.Overrides, extensions: p.Extensions,
			passkeys: passkeys, enabled: enabled, egress: p.Egress()}, q)
	})
	if !ok {
		return nil, why
	}
	ctx, cancel := context.WithTimeout(ctx, ThawDeadline)
	defer cancel()
	if err := parked.LimitEgress(q.Egress); err != nil {
		r.log.Error("the addresses of a parked Chrome cannot be limited; the snapshot is restored from files", "snapshot", row.ID, "error", err)
		browsers.Discard(ctx, parked.Chrome, r.log)
		return nil, "the addresses of the parked Chrome could not be limited"
	}
	if err := parked.SetLimits(q.Limits); err != nil {
		browsers.Discard(ctx, parked.Chrome, r.log)
		return nil, "the parked Chrome could not get the session's limits: " + fault.MessageOf(err)
	}
	if err := parked.Thaw(ctx); err != nil {
		r.log.Warn("a parked Chrome did not answer after it was thawed; the snapshot is restored from files", "snapshot", row.ID, "error", err)
		browsers.Discard(ctx, parked.Chrome, r.log)
		return nil, "the parked Chrome did not answer after it was thawed"
	}
	return parked, ""
}

// started returns the thawed Chrome without its document; [Restorer.Start] adds that.
func (p *Parked) started() StartResult {
	return StartResult{Chrome: p.Chrome, Overrides: p.Document.Overrides, Extensions: p.Extensions, Partial: p.Partial, Notes: p.Notes}
}

// asRestored turns the lines of a save into those of a thawed Chrome. Until a
// verification says otherwise, everything that was saved counts as restored.
func asRestored(saved []state.Component) []state.Component {
	lines := append([]state.Component{}, saved...)
	for i := range lines {
		lines[i].Restored = lines[i].Saved
	}
	return lines
}
