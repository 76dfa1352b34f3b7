package state

import "encoding/json"

// Databases holds the IndexedDB databases of one origin. Its field names are those of
// Playwright's storageState, so that one script can read and write both.
type Databases struct {
	Origin    string     `json:"origin"` // "https://a.example", without a trailing slash
	Databases []Database `json:"databases"`
}

// Database is one IndexedDB database.
type Database struct {
	Name    string  `json:"name"`
	Version int64   `json:"version"`
	Stores  []Store `json:"stores"`
}

// Store is one object store. Its key path is a string, a list of strings, or absent;
// without one, each record has its own key.
type Store struct {
	Name          string   `json:"name"`
	AutoIncrement bool     `json:"autoIncrement"`
	KeyPath       *string  `json:"keyPath,omitempty"`
	KeyPathArray  []string `json:"keyPathArray,omitempty"`
	Records       []Record `json:"records"`
	Indexes       []Index  `json:"indexes"`
}

// Index is one index of an object store.
type Index struct {
	Name         string   `json:"name"`
	KeyPath      *string  `json:"keyPath,omitempty"`
	KeyPathArray []string `json:"keyPathArray,omitempty"`
	MultiEntry   bool     `json:"multiEntry"`
	Unique       bool     `json:"unique"`
}

// Record is one record. Key and Value hold plain JSON. Other values (a Date, a Map, a
// typed array) are in the Encoded fields, as Playwright encodes arguments.
type Record struct {
	Key          json.RawMessage `json:"key,omitempty"`
	KeyEncoded   json.RawMessage `json:"keyEncoded,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"`
	ValueEncoded json.RawMessage `json:"valueEncoded,omitempty"`
}

// Records returns the number of records in all databases.
func (d Databases) Records() int {
	n := 0
	for _, db := range d.Databases {
		for _, store := range db.Stores {
			n += len(store.Records)
		}
	}
	return n
}
