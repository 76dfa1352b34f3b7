package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// Two saves of one user are compared by name. Values need the right to secrets, and other
// users' snapshots do not exist for the caller.
func TestDiff(t *testing.T) {
	r := newRig(t, nil)
	saved := func(c access.Caller) string {
		return r.end(c, r.create(c, nil).ID, request.End{Mode: save.Filesystem, Conflict: save.Keep}).Snapshot.ID
	}
	one, two, his := saved(alice), saved(alice), saved(bob)
	got, err := r.library.Diff(t.Context(), alice, one, two, false)
	if err != nil {
		t.Fatal(err)
	}
	want := library.Diff{From: one, To: two, Changes: []state.Change{{Name: state.ComponentCookies, Origin: "a.example",
		Added: []string{}, Removed: []string{}, Changed: []string{"sid"}, Before: 1, After: 1}},
		NotCompared: []state.Uncompared{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := r.library.Diff(t.Context(), alice, one, one, false); err != nil || got.Changes == nil || len(got.Changes) != 0 {
		t.Errorf("with itself: %+v, %v", got, err)
	}
	valued, err := r.library.Diff(t.Context(), keeper, one, two, true)
	if err != nil || !strings.HasPrefix(*valued.Changes[0].Values["sid"].Before, "of ") {
		t.Errorf("%+v, %v", valued, err)
	}
	everybody := access.Caller{KeyID: "key-e", UserID: "alice", AllUsers: true, Rights: []access.Right{access.RightUse}}
	for name, test := range map[string]struct {
		caller   access.Caller
		from, to string
		values   bool
		code     fault.Code
	}{
		"values without the right": {alice, one, two, true, fault.Forbidden},
		"another user's":           {alice, one, his, false, fault.SnapshotNotFound},
		"none":                     {alice, "nothing", two, false, fault.SnapshotNotFound},
		"of two users":             {everybody, one, his, false, fault.UserMismatch},
	} {
		if got, err := r.library.Diff(t.Context(), test.caller, test.from, test.to, test.values); !fault.Is(err, test.code) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := r.library.Diff(t.Context(), admin, one, his, false); err != nil {
		t.Errorf("an admin: %v", err)
	}
}

// The error for another user's snapshot reads as that for an unknown ID, so that callers
// cannot find out which IDs exist.
func TestOthersSnapshotsReadAsUnknown(t *testing.T) {
	r := newRig(t, nil)
	his := r.end(bob, r.create(bob, nil).ID, filesystem).Snapshot.ID
	for name, call := range map[string]func(id string) error{
		"read": func(id string) error { _, err := r.library.Snapshot(t.Context(), alice, id); return err },
		"default": func(id string) error {
			_, err := r.library.SetDefault(t.Context(), alice, alice.UserID, id, nil)
			return err
		},
		"restore": func(id string) error {
			_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromEnvironment = id }))
			return err
		},
	} {
		foreign, unknown := call(his), call("unknown")
		if !fault.Is(foreign, fault.SnapshotNotFound) || strings.ReplaceAll(fault.MessageOf(foreign), his, "unknown") != fault.MessageOf(unknown) {
			t.Errorf("%s: %v, and of an unknown one %v", name, foreign, unknown)
		}
	}
}

// A save with a selection keeps what is selected and reports the rest.
func TestSaveSelected(t *testing.T) {
	r := newRig(t, nil)
	without := request.End{Mode: save.Memory, Conflict: save.Keep, Origins: state.Selection{Exclude: []string{"a.example"}}}
	id := r.create(alice, nil).ID
	if _, err := r.End(t.Context(), alice, id, without); !fault.Is(err, fault.InvalidField) {
		t.Errorf("a memory snapshot: %v", err)
	}
	without.Mode = save.Filesystem
	a := r.end(alice, id, without)
	if len(a.LeftOut) != 2 || a.LeftOut[0].Dropped != 1 || a.LeftOut[0].Reason.Code != report.LeftOut {
		t.Errorf("left out: %+v", a.LeftOut)
	}
	r.create(alice, func(c *request.Create) { c.FromEnvironment = a.Snapshot.ID })
	if doc := r.browsers.last().restored; len(doc.Cookies) != 0 || len(doc.Tabs) != 0 || !doc.TabsByURL {
		t.Errorf("%+v", doc)
	}
}

// A parked Chrome holds everything. A selection is therefore restored from the snapshot's
// files.
func TestSelectionIsNotParked(t *testing.T) {
	r := newRig(t, nil)
	r.end(alice, r.create(alice, nil).ID, memoryDefault)
	of := func(s state.Selection) answer.Info {
		return r.create(alice, func(c *request.Create) { fromAlice(c); c.Origins = s })
	}
	out := of(state.Selection{Exclude: []string{"a.example"}}).Restored
	if out.Path != restore.PathCold || !strings.Contains(out.FallbackReason, "origins are selected") {
		t.Errorf("%+v", out)
	}
	if doc := r.browsers.last().restored; len(doc.Cookies) != 0 || len(doc.Tabs) != 0 || !doc.TabsByURL {
		t.Errorf("%+v", doc)
	}
	in := of(state.Selection{Include: []string{"https://a.example"}})
	if doc := r.browsers.last().restored; len(doc.Cookies) != 1 || len(doc.Tabs) != 1 {
		t.Errorf("%+v, %+v", doc, in.Restored)
	}
	if whole := r.create(alice, fromAlice); whole.Restored.Path != restore.PathParked {
		t.Errorf("the parked Chrome is gone: %+v", whole.Restored)
	}
}
