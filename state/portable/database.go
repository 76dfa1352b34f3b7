package portable

import (
	"encoding/json"

	"github.com/stasisd/stasis/state"
)

// maxVersion is the highest version that a script can give a database (2^53).
const maxVersion = 1 << 53

// readDatabase reads an IndexedDBDatabase of a storageState.
func readDatabase(n node, lost *losses) (db state.Database, err error) {
	o, err := n.object()
	if err != nil {
		return db, err
	}
	if db.Name, err = o.get("name").text(); err != nil {
		return db, err
	}
	version, err := o.get("version").number()
	if err != nil {
		return db, err
	}
	if db.Version = int64(version); float64(db.Version) != version || version < 1 || version > maxVersion {
		return db, o.get("version").wrong("a whole number from 1")
	}
	stores, err := o.get("stores").list()
	if err != nil {
		return db, err
	}
	db.Stores = make([]state.Store, 0, len(stores))
	for _, n := range stores {
		store, err := readStore(n, lost)
		if err != nil {
			return db, err
		}
		db.Stores = append(db.Stores, store)
	}
	o.drop(lost, "name", "version", "stores")
	return db, nil
}

func readStore(n node, lost *losses) (s state.Store, err error) {
	o, err := n.object()
	if err != nil {
		return s, err
	}
	if s.Name, err = o.get("name").text(); err != nil {
		return s, err
	}
	if s.AutoIncrement, err = o.get("autoIncrement").boolean(); err != nil {
		return s, err
	}
	if s.KeyPath, s.KeyPathArray, err = readKeyPath(o); err != nil {
		return s, err
	}
	records, err := o.get("records").list()
	if err != nil {
		return s, err
	}
	s.Records = make([]state.Record, 0, len(records))
	for _, n := range records {
		r, err := n.object()
		if err != nil {
			return s, err
		}
		if !r.has("value") && !r.has("valueEncoded") {
			return s, invalid("%s: must have value or valueEncoded", n.path)
		}
		if inline := s.KeyPath != nil || s.KeyPathArray != nil; !inline && !r.has("key") && !r.has("keyEncoded") {
			return s, invalid("%s: must have key or keyEncoded", n.path)
		}
		s.Records = append(s.Records, state.Record{Key: plain(r, "key"), KeyEncoded: plain(r, "keyEncoded"),
			Value: plain(r, "value"), ValueEncoded: plain(r, "valueEncoded")})
		r.drop(lost, "key", "keyEncoded", "value", "valueEncoded")
	}
	indexes, err := o.get("indexes").list()
	if err != nil {
		return s, err
	}
	s.Indexes = make([]state.Index, 0, len(indexes))
	for _, n := range indexes {
		index, err := readIndex(n, lost)
		if err != nil {
			return s, err
		}
		s.Indexes = append(s.Indexes, index)
	}
	o.drop(lost, "name", "autoIncrement", "keyPath", "keyPathArray", "records", "indexes")
	return s, nil
}

func readIndex(n node, lost *losses) (x state.Index, err error) {
	o, err := n.object()
	if err != nil {
		return x, err
	}
	if x.Name, err = o.get("name").text(); err != nil {
		return x, err
	}
	if x.MultiEntry, err = o.get("multiEntry").boolean(); err != nil {
		return x, err
	}
	if x.Unique, err = o.get("unique").boolean(); err != nil {
		return x, err
	}
	if x.KeyPath, x.KeyPathArray, err = readKeyPath(o); err != nil {
		return x, err
	}
	if x.KeyPath == nil && x.KeyPathArray == nil {
		return x, invalid("%s: must have keyPath or keyPathArray", n.path)
	}
	o.drop(lost, "name", "keyPath", "keyPathArray", "multiEntry", "unique")
	return x, nil
}

// readKeyPath reads a key path: one, several, or none.
func readKeyPath(o object) (path *string, paths []string, err error) {
	if o.has("keyPath") {
		text, err := o.get("keyPath").text()
		if err != nil {
			return nil, nil, err
		}
		path = &text
	}
	list, err := optional(o, "keyPathArray", nil, node.list)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range list {
		text, err := n.text()
		if err != nil {
			return nil, nil, err
		}
		paths = append(paths, text)
	}
	if path != nil && paths != nil {
		return nil, nil, invalid("%s: must not have both keyPath and keyPathArray", o.path)
	}
	return path, paths, nil
}

// plain returns a member unchanged. Only the script that wrote it knows its meaning.
func plain(o object, name string) json.RawMessage { return o.members[name] }
