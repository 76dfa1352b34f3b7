package session

import (
	"context"
	"strings"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
)

// thawDeadline bounds how long a parked Chrome may take to answer.
const thawDeadline = 3 * time.Second

// thaw takes the snapshot's parked Chrome; nil and the reason where it cannot
// serve.
func (s *Service) thaw(ctx context.Context, r Create, snap profiles.Snapshot, named []profiles.Extension) (_ *parkedChrome, why string) {
	if !r.RestoreTabs {
		return nil, "restore_tabs is false, and a parked Chrome has its tabs open"
	}
	if !r.Origins.All() {
		return nil, "origins are selected, and a parked Chrome holds them all"
	}
	parked, ok, why := s.parked.Take(snap.ID, func(p *parkedChrome) string {
		if is := p.Engine(); is != r.Engine {
			return "the parked Chrome is of the " + is + " engine, and " + r.Engine + " is to run"
		}
		if other := r.Overrides.Over(p.doc.Overrides).Differ(p.doc.Overrides); len(other) > 0 {
			return "the parked Chrome differs from what is asked for: " + strings.Join(other, ", ")
		}
		if id := lacks(p.extensions, named); id != "" {
			return "the parked Chrome does not have extension " + id + " in the version that is asked for"
		}
		if held, given := p.Passkeys(); held.Given(r.Passkeys) != given {
			return "the parked Chrome runs with other passkeys"
		}
		return ""
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
