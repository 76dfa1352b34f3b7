package hiddentab

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stasisd/stasis/state"
)

// readLocal reads the items by key: an item may have the name of a method or of a
// property that every object has.
const readLocal = `Array.from({length: localStorage.length}, (_, i) => localStorage.key(i))
  .map((key) => ({key: key.toWellFormed(), value: localStorage.getItem(key).toWellFormed()}))`

// writeLocal makes localStorage hold exactly a list of items. It does not touch an item
// that is there already. CDP cannot carry half of a surrogate pair: such a value was read
// as U+FFFD, and the profile has it as the site wrote it.
const writeLocal = `(() => {
  const items = new Map(%s.map(i => [i.key, i.value]));
  const keys = Array.from({length: localStorage.length}, (_, i) => localStorage.key(i));
  for (const key of keys) {
    const said = key.toWellFormed();
    if (items.get(said) === localStorage.getItem(key).toWellFormed()) items.delete(said);
    else localStorage.removeItem(key);
  }
  for (const [key, value] of items) localStorage.setItem(key, value);
})()`

// ReadLocal reads the localStorage of a storage key.
func (t *Tab) ReadLocal(ctx context.Context, storageKey string) (state.Area, error) {
	area := state.Area{StorageKey: storageKey, Items: []state.Item{}}
	var items []struct{ Key, Value string }
	err := t.RunAt(ctx, storageKey, readLocal, &items)
	for _, i := range items {
		area.Items = append(area.Items, state.Item(i))
	}
	return area, err
}

// WriteLocal makes the localStorage of the area's storage key hold exactly the area's
// items.
func (t *Tab) WriteLocal(ctx context.Context, area state.Area) error {
	items, err := json.Marshal(area.Items)
	if err != nil {
		return err
	}
	return t.RunAt(ctx, area.StorageKey, fmt.Sprintf(writeLocal, items), nil)
}
