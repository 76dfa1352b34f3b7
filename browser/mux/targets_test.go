package mux

import "testing"

// TargetClosed is closed at the end of a target, and at once for an unknown one.
func TestGone(t *testing.T) {
	m, f := start(t, Options{}, nil)
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"about:blank"}}`)
	<-m.FirstPage()
	<-m.TargetClosed("N")
	closed, other := m.TargetClosed("P"), m.TargetClosed("P")
	select {
	case <-closed:
		t.Error("TargetClosed is not closed")
	default:
	}
	f.emit("", "Target.targetDestroyed", `{"targetId":"P"}`)
	<-closed
	<-other
	<-m.TargetClosed("P")
}

// FirstPage is closed by the first page, not by other targets that Chrome opens before it.
// Later pages change nothing.
func TestFirstPage(t *testing.T) {
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
	case <-m.FirstPage():
		t.Error("FirstPage was closed before the first page")
	default:
	}
	for range 2 {
		f.emit("", "Target.targetInfoChanged", `{"targetInfo":{"targetId":"P","type":"page","url":"about:blank"}}`)
		<-m.FirstPage()
	}
}
