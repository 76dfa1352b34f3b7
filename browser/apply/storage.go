package apply

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/browser/hiddentab"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// LocalStorage makes the localStorage of each area's origin hold exactly the area's
// items, and returns a report line for each.
func LocalStorage(ctx context.Context, conn hiddentab.Conn, areas []state.Area) ([]state.Component, error) {
	outcome, err := each(ctx, conn, len(areas), func(ctx context.Context, t *hiddentab.Tab, i int) error { return t.WriteLocal(ctx, areas[i]) })
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, "apply.local_storage", "localStorage could not be written")
	}
	var lines []state.Component
	for i, area := range areas {
		line := state.Component{Name: state.ComponentLocalStorage, Origin: area.StorageKey, Saved: len(area.Items), Restored: len(area.Items)}
		if err := outcome[i]; err != nil {
			line.Restored, line.Dropped, line.Reason = 0, line.Saved, report.NotWritten.With("the origin's storage could not be written")
			switch {
			case errors.Is(err, hiddentab.ErrNoKey):
				line.Reason = report.Unnamed.With("its storage key has a nonce or an opaque site, so no new page can have it")
			case errors.Is(err, errNoTime):
				line.Reason = report.NoTime.Reason()
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// databases writes the document's databases. Each is written completely or not at all.
func databases(ctx context.Context, conn hiddentab.Conn, all []state.Databases) ([]state.Component, error) {
	written := make([][]int, len(all)) // the records of each database
	outcome, err := each(ctx, conn, len(all), func(ctx context.Context, t *hiddentab.Tab, i int) (err error) {
		written[i], err = t.WriteDatabases(ctx, all[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var lines []state.Component
	for i, d := range all {
		dbs := state.Component{Name: state.ComponentIndexedDB, Origin: d.Origin + "/", Saved: len(d.Databases)}
		records := state.Component{Name: state.ComponentIndexedDBRecords, Origin: d.Origin + "/", Saved: d.Records()}
		why := report.NotWritten.With("a database could not be created as saved")
		switch {
		case outcome[i] == nil:
			for _, n := range written[i] {
				if n >= 0 {
					dbs.Restored++
					records.Restored += n
				}
			}
		case errors.Is(outcome[i], errNoTime):
			why = report.NoTime.Reason()
		}
		for _, line := range []*state.Component{&dbs, &records} {
			if line.Dropped = line.Saved - line.Restored; line.Dropped > 0 {
				line.Reason = why
			}
		}
		lines = append(lines, dbs, records)
	}
	return lines, nil
}
