package hiddentab

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"fmt"

	"github.com/stasisd/stasis/state"
)

// databaseScript is an object with the functions read and write.
//
//go:embed indexeddb.js
var databaseScript string

// maxRead bounds the records of one origin, in characters of JSON.
const maxRead = 32 << 20

// Storage is what scripts can read of one origin.
type Storage struct {
	Databases []state.Database `json:"databases"`
	// Lost counts the records that JSON cannot express: those with a Blob, a file or a
	// CryptoKey.
	Lost  int          `json:"lost"`
	Items []state.Item `json:"items"` // of localStorage
}

// ReadStorage reads the localStorage and the IndexedDB databases of an origin, such as
// "https://a.example".
func (t *Tab) ReadStorage(ctx context.Context, origin string) (Storage, error) {
	var s Storage
	return s, t.callDatabases(ctx, origin, fmt.Sprintf("read(%d)", maxRead), &s)
}

// WriteDatabases creates an origin's IndexedDB databases. It returns the number of
// records in each, or -1 for a database that could not be created.
func (t *Tab) WriteDatabases(ctx context.Context, d state.Databases) (written []int, err error) {
	if !webOrigin(d.Origin + "/") {
		return nil, errNotWeb
	}
	in, err := json.Marshal(d.Databases)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(string(in)) // parsed in the page: in an object literal, __proto__ is not a plain name
	if err != nil {
		return nil, err
	}
	err = t.callDatabases(ctx, d.Origin, fmt.Sprintf("write(JSON.parse(%s))", text), &written)
	return written, err
}

// callDatabases calls a function of the script in a page of an origin.
func (t *Tab) callDatabases(ctx context.Context, origin, call string, out any) error {
	return t.Run(ctx, state.StorageKey{Origin: origin}, "("+databaseScript+")."+call, out)
}
