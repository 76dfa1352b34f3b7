package session

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/state"
)

// A snapshot reports when its logins end, by the daemon's clock. A restore of an expired
// login warns, from a parked Chrome and from files.
func TestExpiredLogins(t *testing.T) {
	for _, asked := range []request.End{filesystem, memory} {
		t.Run(string(asked.Mode), func(t *testing.T) {
			r := newRig(t, nil)
			end := r.clock.now().Add(time.Hour).Truncate(time.Second)
			id := r.create(alice, nil).ID
			r.browsers.last().reads = func(doc *state.Document) {
				doc.Cookies = []state.Cookie{{Name: "auth_token", Value: "a secret", Domain: ".www.a.example", Path: "/", Expires: float64(end.Unix())}}
			}
			snap := r.end(alice, id, asked).Snapshot
			want := []state.Login{{Site: "a.example", ExpectedEnd: &end, Basis: state.BasisCookie, Names: []string{"auth_token"}}}
			if diff := cmp.Diff(want, snap.Logins); diff != "" {
				t.Errorf("at the save (-want +got):\n%s", diff)
			}
			r.clock.add(2 * time.Hour)
			want[0].Expired = true
			got, err := r.library.Snapshot(t.Context(), alice, snap.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Logins); diff != "" {
				t.Errorf("later (-want +got):\n%s", diff)
			}
			// Twice: first from the parked Chrome, which has no document.
			for range 2 {
				warnings := r.create(alice, func(c *request.Create) { c.FromEnvironment = snap.ID }).Restored.Warnings
				if len(warnings) != 1 || !strings.Contains(warnings[0], "a.example expired on "+end.Format(time.RFC3339)) {
					t.Errorf("warnings %q", warnings)
				}
			}
		})
	}
}

// Nothing warns before the end. A snapshot whose report has no logins is readable.
func TestValidLogins(t *testing.T) {
	r := newRig(t, nil)
	_, snap := r.saved(alice, memory) // a session cookie
	for range 2 {
		if warnings := r.create(alice, func(c *request.Create) { c.FromEnvironment = snap }).Restored.Warnings; len(warnings) > 0 {
			t.Errorf("warnings %q", warnings)
		}
	}
	info := library.InfoOf(profiles.Snapshot{Report: []byte(`{"components": [], "warnings": []}`)}, r.clock.now())
	if info.Logins == nil || len(info.Logins) > 0 {
		t.Errorf("logins %#v", info.Logins)
	}
}
