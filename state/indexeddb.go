package state

import "encoding/json"

// Databases are the IndexedDB databases of one origin. They and what is in
// them are spelt as in Playwright's storageState, so that both can be read
// and written by the same script.
type Databases struct {
	Origin    string     `json:"origin"` // "https://a.example", without a slash
	Databases []Database `json:"databases"`
}

// Database is one IndexedDB database.
type Database struct {
	Name    string  `json:"name"`
	Version int64   `json:"version"`
	Stores  []Store `json:"stores"`
}

// Store is one object store. A key path is a string, a list of strings, or
// neither, where the records bring their keys.
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

// Record is one record. What is JSON stands in Key and Value; what is more
// than that (a Date, a Map, a typed array) in the Encoded ones, as Playwright
// encodes arguments.
type Record struct {
	Key          json.RawMessage `json:"key,omitempty"`
	KeyEncoded   json.RawMessage `json:"keyEncoded,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"`
	ValueEncoded json.RawMessage `json:"valueEncoded,omitempty"`
}

// Records counts the records of all databases.
func (d Databases) Records() int {
	n := 0
	for _, db := range d.Databases {
		for _, store := range db.Stores {
			n += len(store.Records)
		}
	}
	return n
}
