package session

import (
	"context"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/request"
)

// A session that waits for something can be read and listed at once. A call that waits
// for the session returns when its own context ends.
func TestReadWhileASessionWaits(t *testing.T) {
	type blocked func(r *rig, wait func())
	browsers := func(step string) blocked {
		return func(r *rig, wait func()) {
			r.browsers.on(step, func(*fakeChrome) error { wait(); return nil })
		}
	}
	catalogue := func(method string) blocked {
		return func(r *rig, wait func()) { r.catalogue.once(method, wait) }
	}
	pause := func(ctx context.Context, r *rig, id string) error { _, err := r.Pause(ctx, alice, id); return err }
	for name, test := range map[string]struct {
		paused bool // the session is paused before
		block  blocked
		call   func(ctx context.Context, r *rig, id string) error
	}{
		"a freeze": {false, browsers("freeze"), pause},
		"a thaw": {true, browsers("thaw"), func(ctx context.Context, r *rig, id string) error {
			_, err := r.Pages(ctx, alice, id)
			return err
		}},
		"a status": {false, catalogue("UpdateSession"), pause},
		"a message": {false, catalogue("AddMessage"), func(ctx context.Context, r *rig, id string) error {
			_, err := r.Send(ctx, alice, id, agent.MessageRequest{Type: "LOG", Content: "words"})
			return err
		}},
		"a cancel": {false, catalogue("UpdateSession"), func(ctx context.Context, r *rig, id string) error {
			_, err := r.Cancel(ctx, alice, id)
			return err
		}},
		"the end of a run": {false, catalogue("EndRun"), func(ctx context.Context, r *rig, id string) error {
			_, err := r.End(ctx, alice, id, none)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			id := r.create(alice, nil).ID
			if _, err := r.Send(ctx, alice, id, agent.MessageRequest{Type: "LOG", Content: "begun"}); err != nil {
				t.Fatal(err)
			}
			if test.paused {
				if err := pause(ctx, r, id); err != nil {
					t.Fatal(err)
				}
			}
			began, goOn, called := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			test.block(r, func() { close(began); <-goOn })
			short, giveUp := context.WithCancel(ctx)
			go func() { called <- test.call(short, r, id) }()
			<-began
			if info, err := r.Get(ctx, alice, id); err != nil || info.ID != id {
				t.Errorf("%+v, %v", info, err)
			}
			if all, _, err := r.List(ctx, alice, request.List{}); err != nil || len(all) != 1 {
				t.Errorf("%d are listed, %v", len(all), err)
			}
			giveUp()
			if err := <-called; !fault.Is(err, fault.Timeout) {
				t.Errorf("the call ended early with %v", err)
			}
			r.browsers.works()
			close(goOn)
			await(t, "the session has ended", func() bool {
				_, err := r.End(ctx, alice, id, none)
				return err == nil && r.sessions.Find(id) == nil
			})
		})
	}
}
