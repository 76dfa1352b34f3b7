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
	// Lost counts the records that have no form in JSON: a Blob, a file, a CryptoKey.
	Lost  int          `json:"lost"`
	Items []state.Item `json:"items"` // of localStorage
}

// ReadStorage reads the localStorage and the IndexedDB databases of an origin, such as
// "https://a.example".
func (t *Tab) ReadStorage(ctx context.Context, origin string) (Storage, error) {
	var s Storage
	return s, t.callDatabases(ctx, origin, fmt.Sprintf("read(%d)", maxRead), &s)
}

// WriteDatabases makes an origin's IndexedDB databases. It returns how many records
// each has, -1 for one that could not be made.
func (t *Tab) WriteDatabases(ctx context.Context, d state.Databases) (written []int, err error) {
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
	err = t.callDatabases(ctx, d.Origin, fmt.Sprintf("write(JSON.parse(%s))", text), &written)
	return written, err
}

// callDatabases calls a function of the script at an origin.
func (t *Tab) callDatabases(ctx context.Context, origin, call string, out any) error {
	return t.Run(ctx, state.StorageKey{Origin: origin}, "("+databaseScript+")."+call, out)
}
