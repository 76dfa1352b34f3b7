package capture

import (
	"context"

	"github.com/stasisd/stasis/browser/hiddentab"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Storage is what scripts of an environment's origins could read.
type Storage struct {
	Cookies   []state.Cookie
	Local     []state.Area
	IndexedDB []state.Databases
	// Missed lists what could not be read, and records with values that JSON cannot
	// express.
	Missed []state.Missed
}

// ReadStorage reads the cookies, and localStorage and IndexedDB of the given origins
// ("https://a.example"). It uses hidden pages that have these origins, so no request
// leaves the browser.
func ReadStorage(ctx context.Context, conn hiddentab.Conn, origins []string) (Storage, error) {
	const op = "capture.storage"
	jar, err := Cookies(ctx, conn)
	if err != nil {
		return Storage{}, fault.Wrap(err, fault.BrowserFailed, op, "the cookies could not be read")
	}
	out := Storage{Cookies: jar}
	tab, err := hiddentab.Open(ctx, conn)
	if err != nil {
		return out, fault.Wrap(err, fault.BrowserFailed, op, "the storage could not be read")
	}
	defer tab.Close(ctx)
	for _, origin := range origins {
		got, err := tab.ReadStorage(ctx, origin)
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
				Reason: "a record contains a value that JSON cannot express: a Blob, a file or a CryptoKey"})
		}
	}
	return out, nil
}
