package state_test

import (
	"fmt"
	"testing"

	"github.com/stasisd/stasis/state"
)

// BenchmarkDiff compares environments of a hundred sites, of which a tenth changed.
func BenchmarkDiff(b *testing.B) {
	before, after := manySites(""), manySites("now")
	b.ReportAllocs()
	for b.Loop() {
		if changes, _, _ := state.Diff(b.Context(), before, after, true); len(changes) == 0 {
			b.Fatal("no change was found")
		}
	}
}

// manySites returns a hundred sites with twenty cookies and fifty items each. The values
// of every tenth site contain changed.
func manySites(changed string) state.Document {
	d := state.Document{Complete: true}
	for site := range 100 {
		value := "as before"
		if site%10 == 0 {
			value += changed
		}
		host := fmt.Sprintf("site%d.example", site)
		for n := range 20 {
			d.Cookies = append(d.Cookies, state.Cookie{Name: fmt.Sprint("c", n), Value: value, Domain: host, Path: "/"})
		}
		area := state.Area{StorageKey: "https://" + host + "/"}
		for n := range 50 {
			area.Items = append(area.Items, state.Item{Key: fmt.Sprint("k", n), Value: value})
		}
		d.Local = append(d.Local, area)
	}
	return d
}
