package sessionstorage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
)

// WrittenSince finds what was written between two readings. A database that Chrome
// created again does not count as emptied.
func TestWrittenSince(t *testing.T) {
	was := read(t, written(t, area(a, "k", "1"), area(b, "k", "1")))
	for name, test := range map[string]struct {
		now  []state.Area
		want [][]state.Item
	}{
		"nothing":       {[]state.Area{area(a, "k", "1"), area(b, "k", "2")}, nil},
		"a value":       {[]state.Area{area(a, "k", "2", "l", "3")}, [][]state.Item{{{Key: "k", Value: "2"}, {Key: "l", Value: "3"}}}},
		"another tab":   {[]state.Area{area(a, "k", "1"), area(b, "k", "1"), area(a, "k", "9")}, [][]state.Item{{{Key: "k", Value: "9"}}}},
		"created again": {nil, nil},
		"of one empty":  {[]state.Area{area(a)}, nil},
	} {
		got, ok := read(t, written(t, test.now...)).WrittenSince(was, a)
		if diff := cmp.Diff(test.want, got); diff != "" || !ok {
			t.Errorf("%s: %t (-want +got):\n%s", name, ok, diff)
		}
	}
	emptied := Contents{hasValues: true, areas: map[string][]diskArea{a: {{number: "0", items: map[string]string{}, removed: map[string]bool{"k": true}}}}}
	if got, ok := emptied.WrittenSince(was, a); !ok || len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("emptied: %v, %t", got, ok)
	}
	if _, ok := was.WrittenSince(Contents{}, a); ok {
		t.Error("compared with a reading that failed")
	}
	if !was.Has(area(a, "k", "1")) || was.Has(area(a, "k", "2")) || was.Has(area(a)) {
		t.Error("Has is wrong for the areas on disk")
	}
}
