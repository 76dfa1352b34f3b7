package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
)

// The outcomes of a restore's verification.
const (
	VerificationPending  = "pending"
	VerificationOK       = "ok"
	VerificationMismatch = "mismatch"
)

// The ways in which a restore went.
const (
	PathParked  = "parked"
	PathStandby = "standby" // in a Chrome that had it already
	PathWarm    = "warm"    // in a spare
	PathCold    = "cold"    // in a Chrome that was started for it
)

// verified puts a verification's outcome into the report.
func (r *RestoreReport) verified(v state.Verification) {
	r.Verification = VerificationOK
	if !v.OK() {
		r.Verification = VerificationMismatch
	}
	first := r.Components
	r.Components = slices.Clone(first)
	for _, better := range v.Components {
		r.correct(first, better)
	}
	r.Differences = append([]state.Difference{}, v.Differences...)
	var warnings []string
	for _, d := range v.Differences {
		if d.By == state.ByRestore {
			warning := fmt.Sprintf("%s did not come back as saved: %d missing, %d changed",
				strings.TrimSpace(d.Component+" "+d.Origin), d.Missing, d.Changed)
			if d.Component == state.ComponentTabs {
				warning += ": " + strings.Join(d.Names, ", ") // they have no origin to be known by
			}
			warnings = append(warnings, warning)
		}
	}
	r.Differences = state.BoundedDifferences(r.Differences)
	r.warn(warnings...)
}

// unverified says that nobody could look: the report stays pending.
func (r *RestoreReport) unverified() {
	r.warn("what came back could not be verified: Chrome did not let it be read back")
}

// correct puts a better line in the place of one of the first. One that is not
// listed is among those that are added up: as restored whole, for what was
// dropped is listed first. Where the sum too had something dropped, the line's
// may be in it already, and the sum stays.
func (r *RestoreReport) correct(first []state.Component, better state.Component) {
	own := slices.IndexFunc(r.Components, func(c state.Component) bool {
		return c.Name == better.Name && c.Origin == better.Origin && c.More == 0
	})
	sum := slices.IndexFunc(r.Components, func(c state.Component) bool { return c.Name == better.Name && c.More > 0 && !c.OnPurpose() })
	switch {
	case own >= 0:
		r.Components[own] = better
	case sum >= 0 && first[sum].Dropped == 0:
		r.Components[sum].Restored -= better.Dropped + better.Expired
		r.Components[sum].Dropped += better.Dropped
		r.Components[sum].Expired += better.Expired
	}
}

// verify reads the restored state back once the tabs are there, or a thawed
// Chrome runs, and records what it found in the restore report.
func (l *live) verify(doc state.Document) {
	var (
		chrome Chrome
		first  *RestoreReport
		ctx    context.Context // ends when the session is being ended
	)
	if l.ask(l.svc.ctx, func() error {
		chrome, first, ctx = l.chrome, l.report, l.lent
		return l.usable()
	}) != nil {
		return
	}
	var found state.Verification
	var err error
	if first.Path == PathParked {
		found, err = chrome.VerifyThawed(ctx, doc)
	} else {
		found, err = chrome.Verify(ctx, doc, first.Components)
	}
	if ctx.Err() != nil {
		return // the session ended first; the report stays pending
	}
	if err != nil {
		l.svc.Log.Warn("a restore could not be verified", "session", l.id, "error", err)
	}
	// A session that has ended meanwhile keeps its report as it was.
	_ = l.ask(l.svc.ctx, func() error {
		if l.report != first {
			return nil // its Chrome was reopened, and that has a report of its own
		}
		report := *first // others read the one that they were given
		if err != nil {
			report.unverified()
		} else {
			report.verified(found)
		}
		l.setReport(&report)
		return nil
	})
}

// beginVerifying verifies what came back, beside the session's goroutine.
func (l *live) beginVerifying(doc state.Document) {
	l.svc.work.Go(func() { l.verify(doc) })
}

// setReport makes a report the session's, here and then in the record.
func (l *live) setReport(r *RestoreReport) {
	restored := encode(r)
	l.report, l.rec.Restored = r, restored
	l.records.do(func(ctx context.Context) error {
		_, err := l.svc.Catalogue.UpdateSession(ctx, l.id, func(rec *profiles.Session) error {
			rec.Restored = restored
			return nil
		})
		return err
	}, func(err error) {
		if err != nil {
			l.svc.Log.Error("a session's report could not be recorded", "session", l.id, "error", err)
		}
	})
}
