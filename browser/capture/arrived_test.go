package capture

import (
	"testing"

	"github.com/stasisd/stasis/state"
)

// A tab that moves is read again: without an address until it arrives, with one only some times.
func TestMoving(t *testing.T) {
	at := func(url string, moved bool, times int) reading {
		return reading{tab: state.Tab{TargetID: "1", URL: url}, moved: moved, times: times}
	}
	for name, c := range map[string]struct {
		reading reading
		want    bool
	}{
		"read whole":           {at("https://a.example/", false, 0), false},
		"another page came":    {at("https://a.example/", true, 0), true},
		"again and again":      {at("https://a.example/", true, rereads), false},
		"still has no address": {at("", true, rereads), true},
		"a tab that waits":     {at("", false, 0), false},
	} {
		if got := len(moving([]reading{c.reading})) > 0; got != c.want {
			t.Errorf("%s: moving: %v, want %v", name, got, c.want)
		}
	}
}
