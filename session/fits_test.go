package session

import (
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// A save refuses what a restore would refuse, while Chrome is still open.
func TestTooLargeStateIsNotSaved(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Unpack = snapshot.Limits{Entries: 1 << 20, Bytes: 1} })
	id := r.create(alice, nil).ID
	_, err := r.End(t.Context(), alice, id, asDefault)
	wantCode(t, err, fault.SaveFailed)
	if !strings.Contains(fault.MessageOf(err), "continues") || !strings.Contains(fault.MessageOf(err), "--max-unpack") {
		t.Errorf("the error: %v", err)
	}
	r.status(id)
	if info, err := r.Get(t.Context(), alice, id); err != nil || info.BrowserRestarted {
		t.Errorf("Chrome was closed for it: %v", err)
	}
	_, err = r.library.Default(t.Context(), alice, "alice")
	wantCode(t, err, fault.DefaultNotFound)
	r.end(alice, id, none) // a stop could not save it either
}

// A save of some origins copies the profile first, so it needs twice the space.
func TestSpaceForASelection(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	files, err := profile.Select(t.Context(), r.browsers.last().dir.Profile())
	if err != nil {
		t.Fatal(err)
	}
	r.watched.Store = memstore.New(snapshot.DefaultReserve+2*profile.Size(files)-1, time.Now)
	_, err = r.End(t.Context(), alice, id, request.End{Mode: save.Filesystem, Origins: someOrigins})
	wantCode(t, err, fault.StoreFull)
	r.end(alice, id, filesystem)
}

// If a save fails, a paused session stays paused if its Chrome lives on, and runs if its
// Chrome was reopened.
func TestPausedWhenASaveFails(t *testing.T) {
	full := fault.New(fault.StoreFull, "fake", "no space")
	for name, test := range map[string]struct {
		breaks func(*rig)
		again  string
	}{
		"before Chrome is closed": {func(r *rig) { r.browsers.fails(full, "capture") }, "already_paused"},
		"after":                   {func(r *rig) { r.catalogue.fails(full, "Commit") }, "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			id := r.create(alice, nil).ID
			if _, err := r.Pause(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
			test.breaks(r)
			if _, err := r.End(t.Context(), alice, id, asDefault); err == nil {
				t.Fatal("the save did not fail")
			}
			r.browsers.works()
			r.catalogue.works()
			if paused := r.sessions.Find(id).chrome.Frozen(); paused != (test.again == "already_paused") {
				t.Errorf("frozen: %v", paused)
			}
			if a, err := r.Pause(t.Context(), alice, id); err != nil || a.Status != test.again {
				t.Errorf("another pause: %+v, %v", a, err)
			}
		})
	}
}
