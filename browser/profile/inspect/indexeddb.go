package inspect

import (
	"path"
	"strings"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
	"github.com/stasisd/stasis/state"
)

// indexedDB counts databases and records. An origin's default store is a LevelDB beside
// IndexedDB/<origin>.indexeddb.blob. Those of storage buckets and of frames in other
// sites are in WebStorage/<bucket>.
func (s *survey) indexedDB() {
	for _, name := range s.names("IndexedDB") {
		id, known := strings.CutSuffix(name, ".indexeddb.leveldb")
		switch {
		case known:
			s.addIndexedDB(path.Join("IndexedDB", name), originOf(id))
		case strings.HasSuffix(name, ".indexeddb.blob"):
		default:
			s.add(state.Holding{Component: state.ComponentIndexedDB, Uncounted: "its format is unknown"})
		}
	}
	for id, origin := range s.buckets() {
		dir := path.Join("WebStorage", id, "IndexedDB")
		for _, name := range s.names(dir) {
			switch name {
			case "indexeddb.leveldb":
				s.addIndexedDB(path.Join(dir, name), origin)
			case "indexeddb.blob":
			default:
				s.add(state.Holding{Component: state.ComponentIndexedDB, Origin: origin, Uncounted: "its format is unknown"})
			}
		}
	}
}

func (s *survey) addIndexedDB(dir, origin string) {
	db, err := leveldb.Read(s.ctx, s.fsys, dir, func(key []byte) bool { return idbKind(key) != "" }, false)
	n := map[string]int{}
	uncounted := ""
	if err != nil {
		uncounted = err.Error()
	}
	for key := range db.Entries {
		n[idbKind([]byte(key))]++
	}
	for _, component := range []string{state.ComponentIndexedDB, state.ComponentIndexedDBRecords} {
		s.add(state.Holding{Component: component, Origin: origin, Items: n[component], Damage: db.Damage, Uncounted: uncounted})
	}
}

const (
	idbDatabaseName = 201 // key of the global metadata: origin and name of a database
	idbRecords      = 1   // index with an object store's records
)

// idbKind returns the component that a key of an IndexedDB store stands for: a database,
// a record, or "" for keys that are not counted. A key begins with the IDs of its
// database, object store and index; the first byte has their lengths
// (content/browser/indexed_db: indexed_db_leveldb_coding).
func idbKind(key []byte) string {
	if len(key) == 0 {
		return ""
	}
	lengths := [3]int{int(key[0]>>5&7) + 1, int(key[0]>>2&7) + 1, int(key[0]&3) + 1}
	rest := key[1:]
	var ids [3]uint64
	for i, n := range lengths {
		if len(rest) < n {
			return ""
		}
		for j := n - 1; j >= 0; j-- {
			ids[i] = ids[i]<<8 | uint64(rest[j])
		}
		rest = rest[n:]
	}
	switch {
	case ids == [3]uint64{} && len(rest) > 0 && rest[0] == idbDatabaseName:
		return state.ComponentIndexedDB
	case ids[0] != 0 && ids[1] != 0 && ids[2] == idbRecords:
		return state.ComponentIndexedDBRecords
	default:
		return ""
	}
}

// originOf converts an origin in the form of file names, http_host_port with 0 for the
// scheme's default port, to a storage key.
func originOf(id string) string {
	scheme, rest, ok := strings.Cut(id, "_")
	colon := strings.LastIndex(rest, "_")
	if !ok || colon < 0 {
		return id
	}
	host, port := rest[:colon], rest[colon+1:]
	if port == "0" {
		return scheme + "://" + host + "/"
	}
	return scheme + "://" + host + ":" + port + "/"
}
