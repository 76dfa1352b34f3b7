package filter

import (
	"context"

	"github.com/stasisd/stasis/browser/profile/internal/leveldb"
)

// levelDB rewrites a LevelDB with only the wanted entries. Deletions alone would leave
// the bytes in its files until Chrome compacts them. It removes a database that is
// damaged or over the limits of [leveldb.Read].
func (s *run) levelDB(ctx context.Context, dir string, wanted func(key, value []byte) bool) error {
	if !s.exists(dir) {
		return nil
	}
	db, err := leveldb.Read(ctx, s.root.FS(), dir, func([]byte) bool { return true }, true)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if rerr := s.root.RemoveAll(dir); rerr != nil {
		return rerr
	}
	if err != nil {
		s.reportRemoved(dir, err.Error())
		return nil
	}
	if db.Damage != "" {
		s.reportRemoved(dir, db.Damage)
		return nil
	}
	for key, value := range db.Entries {
		if !wanted([]byte(key), value) {
			delete(db.Entries, key)
		}
	}
	return leveldb.Write(s.root, dir, db.Entries)
}
