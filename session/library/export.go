package library

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/state"
)

// Export says in which format the state of an environment is exported.
type Export struct {
	Format Format
	// IndexedDB starts a Chrome on the environment to read its databases.
	IndexedDB bool
}

// ExportResult is the state of an environment in a format, and what that format cannot hold.
type ExportResult struct {
	Body        []byte
	NotExported []NotExported
}

// State returns the state of a snapshot in a format. It needs the right to secrets.
func (l *Library) State(ctx context.Context, c access.Caller, id string, r Export) (ExportResult, error) {
	row, err := l.findSecret(ctx, c, id)
	if err != nil {
		return ExportResult{}, err
	}
	leave, err := l.readings.Take(ctx, c.UserID)
	if err != nil {
		return ExportResult{}, err
	}
	defer leave()
	return l.export(ctx, c, row, r)
}

// DefaultState returns the state of a user's default environment in a format.
func (l *Library) DefaultState(ctx context.Context, c access.Caller, userID string, r Export) (ExportResult, error) {
	d, err := l.Default(ctx, c, userID)
	if err != nil {
		return ExportResult{}, err
	}
	return l.State(ctx, c, d.SnapshotID, r)
}

func (l *Library) export(ctx context.Context, c access.Caller, row profiles.Snapshot, r Export) (ExportResult, error) {
	release, err := l.snapshots.Hold(ctx, row, "exported")
	if err != nil {
		return ExportResult{}, err
	}
	defer release()
	saved, raw, err := l.snapshots.peek(ctx, row)
	if err != nil {
		return ExportResult{}, err
	}
	// For the largest documents each step takes a second or two.
	if err := requestEnded(ctx.Err()); err != nil {
		return ExportResult{}, err
	}
	doc, err := ParseDocument(row.ID, raw)
	if err != nil {
		return ExportResult{}, err
	}
	if err := requestEnded(ctx.Err()); err != nil {
		return ExportResult{}, err
	}
	if r.Format == FormatStasis {
		out := ExportResult{Body: raw, NotExported: []NotExported{}}
		if overrides, secrets := doc.Overrides.WithoutPassword(); secrets {
			doc.Overrides = overrides
			if out.Body, err = json.Marshal(doc); err != nil {
				return ExportResult{}, fault.Wrap(err, fault.Internal, "library.export", "")
			}
			out.NotExported = append(out.NotExported, NotExported{Component: state.ComponentOverrides, Count: 1,
				Reason: "the proxy's password is only in the archive"})
		}
		return out, nil
	}
	var lost []NotExported
	// If the profile was not read over CDP, the document knows almost nothing.
	if read := !doc.Complete && doc.Datadir != state.DatadirNone; r.IndexedDB || read {
		var restored []state.Component
		if doc, restored, err = l.sessions.ReadStorage(ctx, c, row.UserID, saved); err != nil {
			return ExportResult{}, err
		}
		lost = lostOfFormats(restored)
		if !r.IndexedDB {
			doc.IndexedDB = nil
		}
	}
	var out ExportResult
	out.Body, out.NotExported = formats[r.Format].write(doc)
	for _, m := range doc.Missed {
		out.NotExported = append(out.NotExported, NotExported{Component: m.Component, Origin: m.Origin, Count: 1, Reason: m.Reason})
	}
	// State that the save or the import left out is not in the body either, and the body
	// does not say so.
	out.NotExported = append(append(out.NotExported, lost...), lostOfFormats(ReportOf(row).Components)...)
	return out, nil
}

// lostOfFormats lists what a report says was lost, of the kinds that formats can hold.
func lostOfFormats(report []state.Component) []NotExported {
	var lost []NotExported
	for _, line := range report {
		if line.Dropped > 0 && slices.Contains([]string{state.ComponentCookies, state.ComponentLocalStorage, state.ComponentIndexedDB}, line.Name) {
			lost = append(lost, NotExported{Component: line.Name, Origin: line.Origin, Count: line.Dropped, Reason: line.Reason.Text})
		}
	}
	return lost
}
