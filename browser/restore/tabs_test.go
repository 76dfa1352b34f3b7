package restore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// fakeDriver attaches to a new session of the browser when Tabs asks for one.
type fakeDriver struct {
	Driver
	events chan mux.Event
	unread []mux.Event // that Chrome has sent before that
}

func (d *fakeDriver) Call(_ context.Context, method string, _, result any) error {
	if method == target.AttachToBrowserTarget.Method {
		result.(*target.AttachToBrowserTargetResult).SessionID = "mark"
		go func() {
			for _, e := range append(d.unread, attachedEvent("mark", false)) {
				d.events <- e
			}
		}()
	}
	return nil
}

func attachedEvent(session string, waits bool) mux.Event {
	return mux.Event{Method: target.AttachedToTarget.Method,
		Params: fmt.Appendf(nil, `{"sessionId":%q,"targetInfo":{"targetId":%q,"type":"page"},"waitingForDebugger":%t}`, session, session, waits)}
}

// Await waits for each tab anew, and only for a while for tabs that Chrome does not restore.
func TestAwait(t *testing.T) {
	const pause = lateTabDeadline * 3 / 4
	for name, c := range map[string]struct{ tabs, expected, want int }{
		"all come":    {5, 5, 5},
		"some do not": {3, 5, 3},
		"very many":   {40, 40, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeDriver{events: make(chan mux.Event)}
				h := &Tabs{env: Environment{Driver: d, Life: t.Context()}, events: d.events}
				began := time.Now()
				go func() {
					for n := range c.tabs {
						time.Sleep(pause)
						d.events <- attachedEvent(fmt.Sprint(n), true)
					}
				}()
				if err := h.Await(t.Context(), c.expected); err != nil {
					t.Fatal(err)
				}
				if len(h.tabs) != c.want {
					t.Errorf("%d tabs are held, want %d", len(h.tabs), c.want)
				}
				if took, want := time.Since(began), time.Duration(c.tabs)*pause+lateTabDeadline; took > want {
					t.Errorf("it took %s, want at most %s", took, want)
				}
			})
		})
	}
}

// A tab is held that Chrome reported in time, even if the daemon reads that too late.
func TestAwaitOfASlowDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{events: make(chan mux.Event), unread: []mux.Event{attachedEvent("1", true)}}
		h := &Tabs{env: Environment{Driver: d, Life: t.Context()}, events: d.events}
		go func() { d.events <- attachedEvent("0", true) }()
		if err := h.Await(t.Context(), 2); err != nil || len(h.tabs) != 2 {
			t.Errorf("%d tabs, %v", len(h.tabs), err)
		}
	})
}

// Without any tab, Await gives up.
func TestAwaitOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{events: make(chan mux.Event)}
		h := &Tabs{env: Environment{Driver: d, Life: t.Context()}, events: d.events}
		began := time.Now()
		if err := h.Await(t.Context(), 1); err == nil || time.Since(began) != tabDeadline {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// hungDriver is a Chrome whose frames hang. It notes what was posted, by session.
type hungDriver struct {
	fakeDriver
	mu     sync.Mutex
	posted map[target.SessionID][]string
}

func (d *hungDriver) Post(_ context.Context, s target.SessionID, method string, _ any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.posted[s] = append(d.posted[s], method)
	return nil
}

func (d *hungDriver) runs(s target.SessionID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.posted[s], runtime.RunIfWaitingForDebugger.Method)
}

func (d *hungDriver) Session(target.SessionID) cdp.Session { return hungSession{} }

type hungSession struct{ cdp.Session }

func (hungSession) Call(ctx context.Context, _ string, _, _ any) error {
	<-ctx.Done()
	return ctx.Err()
}

// A frame whose process hangs runs without its script in the end. Nothing waits for it.
func TestFrameThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &hungDriver{posted: map[target.SessionID][]string{}}
		h := &Tabs{env: Environment{Driver: d, Life: t.Context()}}
		tab := &heldTab{session: "page"}
		tab.prepare(state.Tab{Session: []state.Area{{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "v"}}}}})
		h.tabs = []*heldTab{tab}
		began := time.Now()
		h.startFrame("page", "frame")
		h.startFrame("unknown", "other")
		if took := time.Since(began); took != 0 || !d.runs("other") || d.runs("frame") {
			t.Errorf("after %s: %v", took, d.posted)
		}
		h.starting.Wait()
		if took := time.Since(began); took != scriptDeadline || !d.runs("frame") {
			t.Errorf("after %s: %v", took, d.posted)
		}
	})
}
