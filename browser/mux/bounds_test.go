package mux

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"
)

// A subscription whose reader does not read ends. The other subscriptions and Chrome
// continue.
func TestUnreadSubscriptionEnds(t *testing.T) {
	m, f := start(t, Options{QueueBytes: 1 << 20}, nil)
	d := drive(t, m)
	unread, cancel := d.Events("A.a")
	defer cancel()
	single, cancelSingle := d.Subscribe("A.a")
	defer cancelSingle()
	other, cancelOther := d.Events("A.b")
	defer cancelOther()
	root, large := d.root, fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 100<<10))
	for range 20 {
		f.emit(root, "A.a", large)
	}
	f.emit(root, "A.b", "{}")
	if e := <-other; e.Method != "A.b" {
		t.Errorf("the other subscription got %+v", e)
	}
	given := 0
	for range unread {
		given++
	}
	for range single {
		given++
	}
	if given > 2 { // one event that each reader was about to receive
		t.Errorf("%d events were received from subscriptions that had ended", given)
	}
	if err := m.Err(); err != nil {
		t.Errorf("Chrome ended: %v", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.subs) != 1 {
		t.Errorf("%d subscriptions remain", len(d.subs))
	}
}

// One message may be larger than the limit, and any number passes if they are read.
func TestReadSubscriptionContinues(t *testing.T) {
	m, f := start(t, Options{QueueBytes: 1 << 20}, nil)
	d := drive(t, m)
	d.EndOnOverflow()
	events, cancel := d.Events("A.a")
	defer cancel()
	root, huge := d.root, fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 2<<20))
	for range 5 {
		f.emit(root, "A.a", huge)
		if e, ok := <-events; !ok || len(e.Params) != len(huge) {
			t.Fatalf("%v, %d bytes", ok, len(e.Params))
		}
	}
}

// A driver with EndOnOverflow makes Chrome end if an event would be lost.
func TestEndOnOverflow(t *testing.T) {
	m, f := start(t, Options{QueueBytes: 1 << 20}, nil)
	d := drive(t, m)
	d.EndOnOverflow()
	_, cancel := d.Events("A.a")
	defer cancel()
	root, large := d.root, fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 600<<10))
	for range 3 {
		f.emit(root, "A.a", large)
	}
	<-m.Done()
	if err := m.Err(); err == nil || !strings.Contains(err.Error(), "more events") {
		t.Errorf("Chrome ended with %v", err)
	}
}

// Hidden tabs leave no records after they close, and stay hidden until then.
func TestHiddenTabsLeaveNoRecords(t *testing.T) {
	opened := 0
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method != "Target.createTarget" {
			return nil
		}
		opened++
		f.emit("", "Target.targetCreated", fmt.Sprintf(`{"targetInfo":{"targetId":"H%d","type":"page","url":%q}}`, opened, q.param("url")))
		f.answer(q, fmt.Sprintf(`{"targetId":"H%d"}`, opened))
		return []byte{}
	})
	d := drive(t, m)
	for range departedKept + 10 {
		id, err := d.OpenHidden(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		closed := m.TargetClosed(id)
		f.emit("", "Target.targetDestroyed", fmt.Sprintf(`{"targetId":%q}`, id))
		<-closed
		if !d.Hidden(id) {
			t.Fatalf("%s is no longer hidden", id)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := &m.targets
	if len(at.hide) > departedKept || len(at.departed) > departedKept || len(at.hideURL) != 0 || len(at.all) != 0 {
		t.Errorf("%d hidden IDs, %d departed, %d addresses, %d targets remain", len(at.hide), len(at.departed), len(at.hideURL), len(at.all))
	}
}

// A hidden tab that closes before Chrome's answer leaves no records either.
func TestHiddenTabClosedAtOnce(t *testing.T) {
	m, _ := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method == "Target.createTarget" {
			f.answer(q, `{"targetId":"H"}`)
			return []byte{}
		}
		return nil
	})
	if _, err := drive(t, m).OpenHidden(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.targets.hideURL); n != 0 {
		t.Errorf("%d addresses remain", n)
	}
}

// Browser contexts that clients create and dispose of are removed.
func TestContextsAreRemoved(t *testing.T) {
	made := 0
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		switch q.Method {
		case "Target.createBrowserContext":
			made++
			f.answer(q, fmt.Sprintf(`{"browserContextId":"C%d"}`, made))
		case "Target.getBrowserContexts":
			f.answer(q, fmt.Sprintf(`{"browserContextIds":["C%d"]}`, made))
		default:
			return nil
		}
		return []byte{}
	})
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"T","type":"page","url":"https://a.example/","browserContextId":"C1"}}`)
	d := drive(t, m)
	for range 2 * contextsKept {
		if err := d.Call(t.Context(), "Target.createBrowserContext", target.CreateBrowserContextParams{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, kept := m.targets.contexts["C1"]
	if n := len(m.targets.contexts); n > contextsKept+1 || !kept {
		t.Errorf("%d contexts are recorded; the one of a target: %v", n, kept)
	}
}
