package inspect

import (
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/state"
)

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

// sessionStorage adds a holding only for damage. The database also holds closed tabs, and
// the open tabs' amounts are read over CDP.
func (s *survey) sessionStorage() {
	c, err := sessionstorage.Read(s.ctx, s.fsys)
	s.tabsStorage = c
	if err == nil && c.Damage != "" {
		s.add(state.Holding{Component: state.ComponentSessionStorage, Damage: c.Damage})
	}
}
