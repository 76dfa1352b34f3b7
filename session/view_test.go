package session

import (
	"context"
	"testing"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// fakeViewer is the connection of a viewer. What the fake Chrome writes comes out of said.
type fakeViewer struct {
	said   chan string
	closed chan int
}

func newViewer() *fakeViewer { return &fakeViewer{make(chan string, 100), make(chan int, 1)} }

func (v *fakeViewer) Read(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (v *fakeViewer) Write(_ context.Context, text []byte) error {
	v.said <- string(text)
	return nil
}

func (v *fakeViewer) Meter(func(int) bool) {}

func (v *fakeViewer) WriteBinary(context.Context, []byte) error { return nil }

func (v *fakeViewer) Close(code int, _ string) error {
	select {
	case v.closed <- code:
	default: // only the first code reaches the viewer
	}
	return nil
}

// A viewer has control if its key may drive the session. Every viewer learns how many
// there are. Its connection closes with the reason when its key is deleted and when the
// session ends.
func TestView(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	k, _, err := r.apiKeys.CreateKey(t.Context(), admin, access.KeyOptions{Name: "looker", UserID: "alice", Rights: []access.Right{access.RightView}})
	if err != nil {
		t.Fatal(err)
	}
	looker := access.Caller{KeyID: k.ID, UserID: k.UserID, Rights: k.Rights}
	served := make(chan error, 2)
	view := func(c access.Caller) *fakeViewer {
		v := newViewer()
		go func() { served <- r.View(context.Background(), c, id, v) }()
		return v
	}
	says := func(v *fakeViewer, want string) {
		t.Helper()
		for got := range v.said {
			if got == want {
				return
			}
		}
	}
	driver := view(alice)
	says(driver, "control true, viewers 1")
	second := view(looker)
	says(second, "control false, viewers 2")
	says(driver, "control true, viewers 2")
	if err := r.apiKeys.DeleteKey(t.Context(), admin, k.ID); err != nil {
		t.Fatal(err)
	}
	if code := <-second.closed; code != mux.CloseKeyDeleted {
		t.Errorf("the key was deleted: %d", code)
	}
	says(driver, "control true, viewers 1")
	r.end(alice, id, none)
	if code := <-driver.closed; code != mux.CloseSessionEnded {
		t.Errorf("the session ended: %d", code)
	}
	for range 2 {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]access.Caller{"another user": bob, "a deleted key": looker, "an ended session": alice} {
		if err := r.View(t.Context(), c, id, newViewer()); err == nil {
			t.Errorf("%s may view", name)
		}
	}
	wantCode(t, r.View(t.Context(), bob, id, newViewer()), fault.SessionNotFound)
}

// A session that is viewed is not idle, and is thawed.
func TestViewedIsUsed(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	if _, err := r.Pause(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	v, served := newViewer(), make(chan error, 1)
	go func() { served <- r.View(ctx, alice, id, v) }()
	<-v.said
	chrome := r.sessions.Find(id).chrome
	if chrome.Frozen() {
		t.Error("Chrome is frozen while somebody views it")
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	await(t, "Chrome is frozen again", chrome.Frozen)
}
