package library

import (
	"reflect"
	"testing"

	"github.com/stasisd/stasis/state"
)

// A site has what its hosts have, and nothing of a site whose name ends alike.
func TestSites(t *testing.T) {
	s := SnapshotInfo{
		Logins: []state.Login{{Site: "example.com", Expired: true}, {Site: "a.test"}},
		Components: []state.Component{
			{Name: "cookies", Origin: ".example.com", Saved: 3, Dropped: 1}, {Name: "cookies", Origin: "www.example.com", Saved: 2},
			{Name: "local_storage", Origin: "https://example.com/", Saved: 4}, {Name: "cookies", Origin: "notexample.com", Saved: 9},
			{Name: "tabs", Saved: 1}, {Name: "indexed_db", Origin: "https://example.com", Dropped: 1},
		},
	}
	want := []SavedSite{
		{Site: "example.com", Expired: true, Saved: []SavedOf{{"cookies", 4}, {"local_storage", 4}}},
		{Site: "a.test", Saved: []SavedOf{}},
	}
	if got := s.Sites(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
