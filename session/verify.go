package session

import (
	"context"
	"errors"
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
	PathParked = "parked"
	PathCold   = "cold"
)

// errNothingToVerify: a parked Chrome is the very one that was saved.
var errNothingToVerify = errors.New("nothing was restored")

// verified puts a verification's outcome into the report.
func (r *RestoreReport) verified(v state.Verification) {
	r.Verification = VerificationOK
	if !v.OK() {
		r.Verification = VerificationMismatch
	}
	r.Components = slices.Clone(r.Components)
	for _, better := range v.Components {
		for i := range r.Components {
			if r.Components[i].Name == better.Name && r.Components[i].Origin == better.Origin {
				r.Components[i] = better
			}
		}
	}
	r.Differences = append([]state.Difference{}, v.Differences...)
	r.Warnings = slices.Clone(r.Warnings)
	for _, d := range v.Differences {
		if d.By == state.ByRestore {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s did not come back as saved: %d missing, %d changed",
				strings.TrimSpace(d.Component+" "+d.Origin), d.Missing, d.Changed))
		}
	}
}

// verify reads the restored state back once the tabs are there, and records
// what it found in the restore report.
func (l *live) verify(doc state.Document) {
	var (
		chrome Chrome
		lines  []state.Component
		ctx    context.Context // ends when the session is being ended
	)
	if l.ask(l.svc.ctx, func() error {
		chrome, lines, ctx = l.chrome, l.report.Components, l.lent
		if l.report.Path == PathParked {
			return errNothingToVerify
		}
		return l.usable()
	}) != nil {
		return
	}
	found, err := chrome.Verify(ctx, doc, lines)
	if err != nil {
		return // the session ended first; the report stays pending
	}
	// A session that has ended meanwhile keeps its report as it was.
	_ = l.ask(l.svc.ctx, func() error {
		report := *l.report // others read the one that they were given
		report.verified(found)
		l.report = &report
		l.rec.Restored = encode(l.report)
		_, err := l.svc.Catalogue.UpdateSession(l.svc.ctx, l.id, func(r *profiles.Session) error {
			r.Restored = l.rec.Restored
			return nil
		})
		return err
	})
}
