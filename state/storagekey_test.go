package state_test

import (
	"testing"

	"github.com/stasisd/stasis/state"
)

func TestParseStorageKey(t *testing.T) {
	for serialised, want := range map[string]state.StorageKey{
		"https://a.example/":                             {Origin: "https://a.example"},
		"http://127.0.0.1:8080/":                         {Origin: "http://127.0.0.1:8080"},
		"https://a.example/^0https://top.example":        {Origin: "https://a.example", TopLevelSite: "https://top.example"},
		"http://a.example:81/^0http://127.0.0.1":         {Origin: "http://a.example:81", TopLevelSite: "http://127.0.0.1"},
		"https://a.example/^31":                          {Origin: "https://a.example", CrossSiteAncestor: true},
		"chrome-extension://abcdefghijklmnop/":           {Origin: "chrome-extension://abcdefghijklmnop"},
		"https://a.example/^0chrome-extension://abcdefg": {Origin: "https://a.example", TopLevelSite: "chrome-extension://abcdefg"},
	} {
		got, ok := state.ParseStorageKey(serialised)
		if !ok || got != want {
			t.Errorf("%s: %+v, %t", serialised, got, ok)
		}
		if got.String() != serialised {
			t.Errorf("%s is serialised as %s", serialised, got)
		}
		if got.Partitioned() != (want.TopLevelSite != "" || want.CrossSiteAncestor) {
			t.Errorf("%s: partitioned %t", serialised, got.Partitioned())
		}
	}
	for _, nameless := range []string{"", "/", "^31", "a.example/", "https://a.example/^", "https://a.example/^0", "https://a.example/^11234^25678",
		"https://a.example/^41^52^6https://b.example", "https://a.example/^30", "https://a.example/^31^0https://b.example", "https://a.example/^0https://b.example^31"} {
		if got, ok := state.ParseStorageKey(nameless); ok {
			t.Errorf("%q: %+v", nameless, got)
		}
	}
}

// A key is the same after parsing and serialising it.
func FuzzParseStorageKey(f *testing.F) {
	for _, s := range []string{"https://a.example/", "https://a.example/^0https://b.example", "https://a.example/^31", "https://a.example/^1^2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, ok := state.ParseStorageKey(s)
		if !ok {
			return
		}
		again, ok := state.ParseStorageKey(key.String())
		if !ok || again != key {
			t.Errorf("%q is parsed as %+v, its String as %+v, %t", s, key, again, ok)
		}
	})
}
