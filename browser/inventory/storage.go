package inventory

import (
	"bytes"

	"github.com/stasisd/stasis/browser/inventory/leveldb"
	"github.com/stasisd/stasis/browser/localstorage"
	"github.com/stasisd/stasis/state"
)

const sessionStorage = "Session Storage"

// local reads localStorage.
func (s *survey) local() {
	c, err := localstorage.Read(s.ctx, s.fsys)
	s.localStorage = c
	if err != nil {
		s.add(state.Holding{Component: state.ComponentLocalStorage, Uncounted: err.Error()})
		return
	}
	byOrigin := map[string]int{}
	for _, area := range c.Areas {
		byOrigin[area.StorageKey] = len(area.Items)
	}
	s.counts(state.ComponentLocalStorage, byOrigin, c.Damage, "")
}

// sessionStorage looks for damage only: the database also holds tabs that were
// closed, and how much the open ones have is read over CDP.
func (s *survey) sessionStorage() {
	if !s.exists(sessionStorage) {
		return
	}
	db, err := leveldb.Read(s.ctx, s.fsys, sessionStorage, func(key []byte) bool { return bytes.HasPrefix(key, []byte("map-")) }, false)
	if err == nil && db.Damage != "" {
		s.add(state.Holding{Component: state.ComponentSessionStorage, Damage: db.Damage})
	}
}
