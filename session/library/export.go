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

// Export asks for the state of an environment in a format.
type Export struct {
	Format Format
	// IndexedDB starts a Chrome on the environment to read its databases.
	IndexedDB bool
}

// Exported is the state of an environment in a format, and what of the
// environment the format does not hold.
type Exported struct {
	Body       []byte
	NotCarried []NotCarried
}

// State returns the state of a snapshot in a format. It needs the right to
// secrets.
func (l *Library) State(ctx context.Context, c access.Caller, id string, r Export) (Exported, error) {
	row, err := l.findSecret(ctx, c, id)
	if err != nil {
		return Exported{}, err
	}
	leave, err := l.readings.Take(ctx, c.UserID)
	if err != nil {
		return Exported{}, err
	}
	defer leave()
	return l.export(ctx, row, r)
}

// DefaultState returns the state of a user's default environment in a format.
func (l *Library) DefaultState(ctx context.Context, c access.Caller, userID string, r Export) (Exported, error) {
	d, err := l.Default(ctx, c, userID)
	if err != nil {
		return Exported{}, err
	}
	return l.State(ctx, c, d.SnapshotID, r)
}

func (l *Library) export(ctx context.Context, row profiles.Snapshot, r Export) (Exported, error) {
	release, err := l.snapshots.Hold(ctx, row, "exported")
	if err != nil {
		return Exported{}, err
	}
	defer release()
	saved, raw, err := l.snapshots.peek(ctx, row)
	if err != nil {
		return Exported{}, err
	}
	// Each step takes a second or two of the largest document.
	if err := gaveUp(ctx.Err()); err != nil {
		return Exported{}, err
	}
	doc, err := ParseDocument(row.ID, raw)
	if err != nil {
		return Exported{}, err
	}
	if err := gaveUp(ctx.Err()); err != nil {
		return Exported{}, err
	}
	if r.Format == FormatStasis {
		out := Exported{Body: raw, NotCarried: []NotCarried{}}
		if overrides, secrets := doc.Overrides.WithoutPassword(); secrets {
			doc.Overrides = overrides
			if out.Body, err = json.Marshal(doc); err != nil {
				return Exported{}, fault.Wrap(err, fault.Internal, "library.export", "")
			}
			out.NotCarried = append(out.NotCarried, NotCarried{Component: state.ComponentOverrides, Count: 1,
				Reason: "the password of the proxy is in the archive alone"})
		}
		return out, nil
	}
	var lost []NotCarried
	// Of a profile that nobody read over CDP the document knows next to nothing.
	if read := !doc.Complete && doc.Datadir != state.DatadirNone; r.IndexedDB || read {
		var restored []state.Component
		if doc, restored, err = l.sessions.ReadOut(ctx, saved); err != nil {
			return Exported{}, err
		}
		lost = lostOfFormats(restored)
		if !r.IndexedDB {
			doc.IndexedDB = nil
		}
	}
	var out Exported
	out.Body, out.NotCarried = formats[r.Format].write(doc)
	for _, m := range doc.Missed {
		out.NotCarried = append(out.NotCarried, NotCarried{Component: m.Component, Origin: m.Origin, Count: 1, Reason: m.Reason})
	}
	// What of a format's own kinds the save or the import had to leave behind is
	// not in the body either, and nothing there tells.
	out.NotCarried = append(append(out.NotCarried, lost...), lostOfFormats(ReportOf(row).Components)...)
	return out, nil
}

// lostOfFormats is what a report says was lost of the kinds that formats hold.
func lostOfFormats(report []state.Component) []NotCarried {
	var lost []NotCarried
	for _, line := range report {
		if line.Dropped > 0 && slices.Contains([]string{state.ComponentCookies, state.ComponentLocalStorage, state.ComponentIndexedDB}, line.Name) {
			lost = append(lost, NotCarried{Component: line.Name, Origin: line.Origin, Count: line.Dropped, Reason: line.Reason.Text})
		}
	}
	return lost
}
