package mux

import "testing"

// A target's end is told to who waits for it, and of one that is not there at once.
func TestGone(t *testing.T) {
	m, f := start(t, Options{}, nil)
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"about:blank"}}`)
	<-m.Paged()
	<-m.Gone("N")
	gone, other := m.Gone("P"), m.Gone("P")
	select {
	case <-gone:
		t.Error("the page is still there")
	default:
	}
	f.emit("", "Target.targetDestroyed", `{"targetId":"P"}`)
	<-gone
	<-other
	<-m.Gone("P")
}

// The first page is told of when it becomes one, not by what else Chrome opens
// before it, and again by nothing.
func TestPaged(t *testing.T) {
	m, f := start(t, Options{}, nil)
	for _, info := range []string{
		`{"targetId":"B","type":"browser","url":""}`,
		`{"targetId":"T","type":"tab","url":"about:blank"}`,
		`{"targetId":"U","type":"browser_ui","url":"chrome://omnibox-popup.top-chrome/"}`,
		`{"targetId":"S","type":"page","url":"chrome://settings/"}`,
		`{"targetId":"P","type":"other","url":""}`,
	} {
		f.emit("", "Target.targetCreated", `{"targetInfo":`+info+`}`)
	}
	d, err := m.Driver(t.Context()) // its answers come after those events
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	select {
	case <-m.Paged():
		t.Error("there is no page yet")
	default:
	}
	for range 2 {
		f.emit("", "Target.targetInfoChanged", `{"targetInfo":{"targetId":"P","type":"page","url":"about:blank"}}`)
		<-m.Paged()
	}
}
