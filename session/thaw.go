package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
)

// thawDeadline bounds how long a parked Chrome may take to answer.
const thawDeadline = 3 * time.Second

// thaw takes the snapshot's parked Chrome; nil and the reason where it cannot
// serve.
func (s *Service) thaw(ctx context.Context, r Create, snap profiles.Snapshot, named []profiles.Extension) (_ *parkedChrome, why string) {
	parked, ok, why := s.capacity.TakeParked(snap.ID, func(p *parkedChrome) string {
		held, given := p.Passkeys()
		return differs("parked", standing{engine: p.Engine(), overrides: p.doc.Overrides, extensions: p.extensions, passkeys: held, given: given}, r, named)
	})
	if !ok {
		return nil, why
	}
	ctx, cancel := context.WithTimeout(ctx, thawDeadline)
	defer cancel()
	if err := parked.Thaw(ctx); err != nil {
		s.Log.Warn("a parked Chrome did not thaw", "snapshot", snap.ID, "error", err)
		s.discard(ctx, parked.Chrome)
		return nil, "the parked Chrome did not answer when it was thawed"
	}
	return parked, ""
}

// asRestored turns a capture's report into that of a thawed Chrome: it is all
// still there, as far as is known before it is looked at.
func asRestored(row profiles.Snapshot) []state.Component {
	lines := captureReportOf(row).Components
	for i := range lines {
		lines[i].Restored = lines[i].Saved
	}
	if lines == nil {
		lines = []state.Component{}
	}
	return lines
}
