package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
)

// The cookies that keep a login are distinguished by identity, because two sites may have
// cookies of the same name.
func TestAuthCookies(t *testing.T) {
	a := state.Cookie{Name: "sid", Value: "1", Domain: "a.example", Path: "/", HTTPOnly: true}
	b := state.Cookie{Name: "sid", Value: "2", Domain: "b.example", Path: "/", HTTPOnly: true}
	theme := state.Cookie{Name: "theme", Value: "dark", Domain: "a.example", Path: "/"}
	syncthing := state.Cookie{Name: "sessionid-N4VCH4W", Value: "x", Domain: "127.0.0.1", Path: "/", Session: true}
	visits := state.Cookie{Name: "sessionid-count", Value: "3", Domain: "a.example", Path: "/"}
	out := state.Cookie{Name: "auth_token", Value: "deleted", Domain: "a.example", Path: "/"}
	want := map[string]string{a.Identity(): "1", b.Identity(): "2", syncthing.Identity(): "x"}
	if diff := cmp.Diff(want, state.AuthCookies([]state.Cookie{a, theme, b, syncthing, visits, out})); diff != "" {
		t.Error(diff)
	}
}
