package session

import (
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/request"
)

// A session that is being rescued says so. Calls that need the outcome wait for it;
// others do not. A stop leaves the rescue to the next start.
func TestCallsWaitForRescue(t *testing.T) {
	r := newRig(t, nil)
	id, other := r.create(alice, nil).ID, r.create(alice, nil).ID
	r.browsers.fails(errBroken, "capture") // the dying daemon may still try a save
	r.kill()
	r.browsers.works()
	r.Service = r.daemon(nil)
	entered, gate := make(chan struct{}), make(chan struct{})
	r.catalogue.once("Commit", func() { close(entered); <-gate })
	if err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-entered
	for _, id := range []string{id, other} {
		info, err := r.Get(t.Context(), alice, id)
		if err != nil || !info.Rescuing || info.Ended() || info.Status != profiles.StatusError || info.Reason.Code != profiles.ReasonBeingRescued {
			t.Errorf("%s: %+v, %v", id, info, err)
		}
		_, err = r.Screenshot(t.Context(), alice, id)
		wantCode(t, err, fault.SessionEnding)
	}
	if r.Counts().Rescuing != 2 {
		t.Errorf("%d are being rescued", r.Counts().Rescuing)
	}
	r.create(alice, nil) // a create does not wait

	waits := make(chan error, 2)
	go func() {
		_, err := r.Resume(t.Context(), alice, id, "")
		waits <- err
	}()
	go func() {
		_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromSession = other }))
		waits <- err
	}()
	await(t, "both wait", func() bool {
		counts := r.Counts()
		return counts.Rescuing == 2 && counts.WaitForRescue == 2
	})
	close(gate)
	for range 2 {
		if err := <-waits; err != nil {
			t.Error(err)
		}
	}
	if info, err := r.Get(t.Context(), alice, other); err != nil || info.Rescuing || info.Status != profiles.StatusTerminated {
		t.Errorf("after the rescue: %+v, %v", info, err)
	}
}
