package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

var someOrigins = state.Selection{Include: []string{"a.example"}}

// A session that was given only some origins does not remove the others from the default,
// unless its end selects origins itself.
func TestPartialDefault(t *testing.T) {
	r := newRig(t, nil)
	_, old := r.saved(alice, asDefault)
	part := func(c *request.Create) { fromAlice(c); c.Origins = someOrigins }
	overwrite := asDefault
	overwrite.Conflict = save.Overwrite
	var snap string
	for _, asked := range []request.End{asDefault, overwrite} {
		a := r.end(alice, r.create(alice, part).ID, asked)
		if a.Default == nil || a.Default.Moved || a.Default.Version != 1 || a.Default.Reason != "partial_environment" {
			t.Errorf("%+v: %+v", asked, a.Default)
		}
		if !slices.ContainsFunc(a.Snapshot.Warnings, func(w string) bool { return strings.Contains(w, "only some origins") }) {
			t.Errorf("warnings: %q", a.Snapshot.Warnings)
		}
		snap = a.Snapshot.ID
	}
	t.Run("persist", func(t *testing.T) {
		a, err := r.End(t.Context(), alice, r.create(alice, func(c *request.Create) { part(c); c.Persist = true }).ID, none)
		if err != nil || a.Default == nil || a.Default.Moved || a.Default.Reason != "partial_environment" {
			t.Errorf("%+v, %v", a.Default, err)
		}
	})
	t.Run("its snapshot is partial too", func(t *testing.T) {
		a := r.end(alice, r.create(alice, func(c *request.Create) { c.FromEnvironment = snap }).ID, overwrite)
		if a.Default == nil || a.Default.Moved {
			t.Errorf("%+v", a.Default)
		}
	})
	t.Run("its rescue is partial too", func(t *testing.T) {
		id := r.create(alice, part).ID
		r.kill()
		r.Service = r.daemon(nil)
		if err := recovered(t.Context(), r.Service); err != nil {
			t.Fatal(err)
		}
		a := r.end(alice, r.create(alice, func(c *request.Create) { c.FromSession = id }).ID, overwrite)
		if a.Default == nil || a.Default.Moved {
			t.Errorf("%+v", a.Default)
		}
	})
	if d, err := r.library.Default(t.Context(), alice, "alice"); err != nil || d.SnapshotID != old {
		t.Fatalf("the default: %+v, %v", d, err)
	}
	t.Run("selected at the end", func(t *testing.T) {
		selects := asDefault
		selects.Origins = someOrigins
		if a := r.end(alice, r.create(alice, part).ID, selects); a.Default == nil || !a.Default.Moved {
			t.Fatalf("%+v", a.Default)
		}
		if a := r.end(alice, r.create(alice, fromAlice).ID, asDefault); a.Default == nil || !a.Default.Moved {
			t.Errorf("a default that is already partial: %+v", a.Default)
		}
	})
}
