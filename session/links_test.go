package session

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// The viewers of a shared link have no more than it gives, and are disconnected when it is
// revoked, with their own code. Viewers of other links stay.
func TestViewThroughSharedLink(t *testing.T) {
	r := newRig(t, nil)
	id, other := r.create(alice, nil).ID, r.create(alice, nil).ID
	served := make(chan error, 2)
	share := func(control bool, p access.Purpose) (access.Link, access.Caller) {
		link, ticket, err := r.Share(t.Context(), alice, id, control, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.AuthorizeTicket(t.Context(), ticket, id, p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.AuthorizeTicket(t.Context(), ticket, other, p); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("another session: %v", err)
		}
		return link, c
	}
	view := func(c access.Caller, first, second string) *fakeViewer {
		v := newViewer()
		go func() { served <- r.View(context.Background(), c, id, v) }()
		if a, b := <-v.said, <-v.said; a != first || b != second {
			t.Errorf("%q, %q", a, b)
		}
		return v
	}
	looks, looker := share(false, access.PurposeSharedView)
	drives, driver := share(true, access.PurposeSharedControl)
	watching := view(looker, "a link, may share false, may save false", "control false, viewers 1")
	driving := view(driver, "a link, may share false, may save false", "control true, viewers 2")
	if list, err := r.Links(t.Context(), alice, id); err != nil || len(list) != 2 || list[0].Viewers != 1 || list[1].Viewers != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	wantCode(t, r.Revoke(t.Context(), alice, other, looks.ID), fault.LinkNotFound)
	wantCode(t, r.Revoke(t.Context(), bob, id, looks.ID), fault.SessionNotFound)
	if err := r.Revoke(t.Context(), alice, id, looks.ID); err != nil {
		t.Fatal(err)
	}
	if code := <-watching.closed; code != mux.CloseLinkEnded {
		t.Errorf("the link was revoked: %d", code)
	}
	wantCode(t, r.View(t.Context(), looker, id, newViewer()), fault.Unauthorized)
	if list, err := r.Links(t.Context(), alice, id); err != nil || len(list) != 1 || list[0].ID != drives.ID {
		t.Errorf("%+v, %v", list, err)
	}
	r.end(alice, id, none)
	if code := <-driving.closed; code != mux.CloseSessionEnded {
		t.Errorf("the session ended: %d", code)
	}
	for range 2 {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	_, _, err := r.Share(t.Context(), alice, id, false, time.Hour)
	wantCode(t, err, fault.SessionNotRunning)
}

// A call through a shared link ends with the link, as an upload does. It counts as no viewer.
func TestCallThroughSharedLink(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	link, ticket, err := r.Share(t.Context(), alice, id, true, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.AuthorizeTicket(t.Context(), ticket, id, access.PurposeSharedControl)
	if err != nil {
		t.Fatal(err)
	}
	err = Lookup{r.Service}.WithDir(t.Context(), c, id, func(ctx context.Context, _ *browser.Dir) error {
		if list, err := r.Links(t.Context(), alice, id); err != nil || len(list) != 1 || list[0].Viewers != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		if err := r.Revoke(t.Context(), alice, id, link.ID); err != nil {
			t.Error(err)
		}
		return context.Cause(ctx)
	})
	wantCode(t, err, fault.Unauthorized)
	wantCode(t, Lookup{r.Service}.WithDir(t.Context(), c, id, func(context.Context, *browser.Dir) error { return nil }), fault.Unauthorized)
}
