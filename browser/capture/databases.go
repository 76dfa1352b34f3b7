package capture

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// databaseScript is an object with the functions read and write.
//
//go:embed indexeddb.js
var databaseScript string

// maxRead bounds the records of one origin, in characters of JSON.
const maxRead = 32 << 20

// Storage is what scripts can read of an environment's origins.
type Storage struct {
	Cookies   []state.Cookie
	Local     []state.Area
	IndexedDB []state.Databases
	// Missed names what could not be read, and records that hold what has no
	// spelling in JSON.
	Missed []state.Missed
}

// ReadStorage reads localStorage and IndexedDB of origins ("https://a.example")
// through pages that only look like theirs: no request leaves the browser.
func ReadStorage(ctx context.Context, conn Conn, origins []string) (Storage, error) {
	const op = "capture.storage"
	jar, err := Cookies(ctx, conn)
	if err != nil {
		return Storage{}, fault.Wrap(err, fault.BrowserFailed, op, "the cookies could not be read")
	}
	out := Storage{Cookies: jar}
	s, err := openStub(ctx, conn)
	if err != nil {
		return out, fault.Wrap(err, fault.BrowserFailed, op, "the storage could not be read")
	}
	defer s.close(ctx)
	for _, origin := range origins {
		var got struct {
			Databases []state.Database `json:"databases"`
			Lost      int              `json:"lost"`
			Items     []state.Item     `json:"items"`
		}
		err := s.call(ctx, origin, fmt.Sprintf("read(%d)", maxRead), &got)
		if ctx.Err() != nil {
			return out, fault.Wrap(ctx.Err(), fault.Timeout, op, "the storage was not read in time")
		}
		if err != nil {
			out.Missed = append(out.Missed, state.Missed{Component: state.ComponentIndexedDB, Origin: origin + "/", Reason: "the origin's storage could not be read"})
			continue
		}
		if len(got.Items) > 0 {
			out.Local = append(out.Local, state.Area{StorageKey: origin + "/", Items: got.Items})
		}
		if len(got.Databases) > 0 {
			out.IndexedDB = append(out.IndexedDB, state.Databases{Origin: origin, Databases: got.Databases})
		}
		for range got.Lost {
			out.Missed = append(out.Missed, state.Missed{Component: state.ComponentIndexedDBRecords, Origin: origin + "/",
				Reason: "a record holds what has no form in JSON: a Blob, a file or a CryptoKey"})
		}
	}
	return out, nil
}

// call takes the stub to an origin and calls a function of the script there.
func (s *stub) call(ctx context.Context, origin, call string, out any) error {
	session, _, detach, err := s.visit(ctx, state.StorageKey{Origin: origin})
	if err != nil {
		return err
	}
	defer detach()
	yes := true
	res, err := cdp.Call(ctx, session, runtime.Evaluate, runtime.EvaluateParams{
		Expression: "(" + databaseScript + ")." + call, AwaitPromise: &yes, ReturnByValue: &yes})
	if err != nil {
		return err
	}
	if res.ExceptionDetails != nil {
		return errors.New("the script failed")
	}
	return json.Unmarshal(res.Result.Value, out)
}

// layDatabases writes the document's databases. Each is there whole or not at
// all.
func layDatabases(ctx context.Context, conn Conn, all []state.Databases) ([]state.Component, error) {
	written := make([][]int, len(all)) // the records of each database
	outcome, err := each(ctx, conn, len(all), func(ctx context.Context, s *stub, i int) (err error) {
		written[i], err = s.writeDatabases(ctx, all[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	var lines []state.Component
	for i, d := range all {
		dbs := state.Component{Name: state.ComponentIndexedDB, Origin: d.Origin + "/", Saved: len(d.Databases)}
		records := state.Component{Name: state.ComponentIndexedDBRecords, Origin: d.Origin + "/", Saved: d.Records()}
		why := report.NotWritten.With("a database could not be made as it was described")
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

// writeDatabases makes an origin's databases, and returns how many records each
// has, -1 for one that could not be made.
func (s *stub) writeDatabases(ctx context.Context, d state.Databases) (written []int, err error) {
	if !webOrigin(d.Origin + "/") {
		return nil, errNotWeb
	}
	in, err := json.Marshal(d.Databases)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(string(in)) // parsed there, for a literal takes __proto__ for more than a name
	if err != nil {
		return nil, err
	}
	err = s.call(ctx, d.Origin, fmt.Sprintf("write(JSON.parse(%s))", text), &written)
	return written, err
}
