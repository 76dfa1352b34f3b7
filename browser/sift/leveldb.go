package sift

import "github.com/stasisd/stasis/browser/inventory/leveldb"

// levelDB makes a LevelDB hold only the entries that are wanted. It is written
// anew: a deletion alone would leave the bytes in its files until Chrome
// compacts them. One that cannot be read whole goes whole.
func (s *sieve) levelDB(dir string, wanted func(key, value []byte) bool) error {
	if !s.exists(dir) {
		return nil
	}
	db, err := leveldb.Read(s.root.FS(), dir, func([]byte) bool { return true }, true)
	if rerr := s.root.RemoveAll(dir); rerr != nil {
		return rerr
	}
	if err != nil || db.Damage != "" {
		s.lose(dir)
		return nil
	}
	for key, value := range db.Entries {
		if !wanted([]byte(key), value) {
			delete(db.Entries, key)
		}
	}
	return leveldb.Write(s.root, dir, db.Entries)
}
