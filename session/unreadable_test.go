package session

import (
	"errors"
	"io"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/snapshot"
)

// An event that cannot be unsealed is reported as such. Pages and streams continue, with
// secrets and without, and its plain part is still there.
func TestEventsThatCannotBeUnsealed(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.browsers.last().emit(browser.EventNavigation, map[string]any{"url": "https://a.example/"})
	if _, err := r.Send(t.Context(), alice, id, agent.MessageRequest{Type: "LOG", Content: "password=hunter2"}); err != nil {
		t.Fatal(err)
	}
	r.end(alice, id, none)
	runs, err := r.Runs(t.Context(), alice, id)
	if err != nil {
		t.Fatal(err)
	}
	const (
		started = `started {"chrome":"156.0.8078.79","engine":"chrome"}`
		ended   = `ended {"cause":"asked","status":"completed"}`
		masked  = `message {"content":"password=***","id":1,"role":"assistant","type":"LOG"}`
		closed  = `message {"content":"password=***","id":1,"role":"assistant","sealed":true,"type":"LOG"}`
		sealed  = `navigated {"sealed":true}`
	)
	reads := func(t *testing.T, whole bool, want ...string) {
		page, err := r.RunEvents(t.Context(), admin, id, runs[0].ID, 0, 0, whole)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range page.Events {
			got = append(got, e.Type+" "+string(e.Data))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a page, -want +got:\n%s", diff)
		}
		feed, err := r.Follow(t.Context(), admin, id, events.FollowRequest{Secrets: whole})
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		got = nil
		for {
			e, err := feed.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Type+" "+string(e.Data))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a stream, -want +got:\n%s", diff)
		}
	}
	all, err := r.catalogue.SealedEvents(t.Context(), profiles.SealedEvent{}, 0)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d sealed events, %v", len(all), err)
	}
	t.Run("damaged", func(t *testing.T) {
		e := all[0]
		e.Replacement = append([]byte("no "), e.Sealed...)
		if n, err := r.catalogue.ResealEvents(t.Context(), []profiles.SealedEvent{e}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		reads(t, false, started, sealed, masked, ended)
		reads(t, true, started, sealed, `message {"content":"password=hunter2","id":1,"role":"assistant","type":"LOG"}`, ended)
		e.Sealed, e.Replacement = e.Replacement, e.Sealed
		if n, err := r.catalogue.ResealEvents(t.Context(), []profiles.SealedEvent{e}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	})
	t.Run("another identity", func(t *testing.T) {
		other, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		r.kill()
		r.keys = snapshot.NewKeys(other, [32]byte{1})
		r.Service = r.daemon(nil)
		reads(t, false, started, sealed, masked, ended)
		reads(t, true, started, sealed, closed, ended)
	})
}
