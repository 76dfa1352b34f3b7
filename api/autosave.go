package api

import (
	"fmt"
	"slices"

	"github.com/stasisd/stasis/session/autosave"
)

// autoSaveBody is auto_save as an object. The value true means an empty object.
type autoSaveBody struct {
	Interval *int64    `json:"interval_seconds"`
	On       *[]string `json:"on"`
	Keep     *int64    `json:"keep"`

	off bool // auto_save was false, which is the same as absent
}

// setBool applies true or false in place of the object.
func (b *autoSaveBody) setBool(on bool) { b.off = !on }

func (b *autoSaveBody) check() error {
	if b == nil {
		return nil
	}
	if b.Interval == nil {
		b.Interval = new(int64)
		*b.Interval = 60
	}
	if b.On == nil {
		b.On = &[]string{autosave.OnNavigation, autosave.OnLogin, autosave.OnDisconnect}
	}
	if b.Keep == nil {
		b.Keep = new(int64)
		*b.Keep = 3
	}
	for i, reason := range *b.On {
		field := fmt.Sprintf("auto_save.on[%d]", i)
		if err := oneOf(field, reason, autosave.OnNavigation, autosave.OnLogin, autosave.OnDisconnect, autosave.OnMessage); err != nil {
			return err
		}
		if slices.Contains((*b.On)[:i], reason) {
			return invalid(field, "%s is given twice", reason)
		}
	}
	return firstOf(
		withinSeconds("auto_save.interval_seconds", *b.Interval, 5, 86400),
		within("auto_save.keep", *b.Keep, 1, 100),
	)
}

func (b *autoSaveBody) request() *autosave.Settings {
	if b == nil {
		return nil
	}
	on := func(reason string) bool { return slices.Contains(*b.On, reason) }
	return &autosave.Settings{Interval: seconds(*b.Interval), Keep: int(*b.Keep),
		Navigation: on(autosave.OnNavigation), Login: on(autosave.OnLogin), Disconnect: on(autosave.OnDisconnect), Message: on(autosave.OnMessage)}
}
