package mux

import (
	"fmt"
	"testing"
)

// The daemon lets a page run only after every client that keeps it paused at its start,
// or its tab, has resumed it or has gone.
func TestWhenResumed(t *testing.T) {
	m, f := start(t, Options{}, nil)
	d, err := m.Driver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{}, 1)
	when := func() { d.WhenResumed("P", func() { released <- struct{}{} }) }
	blocked := func(what string) {
		t.Helper()
		select {
		case <-released:
			t.Errorf("the page may run, although %s", what)
		default:
		}
	}

	c := connect(t, m, ServeOptions{})
	c.call(9, "", "Browser.getVersion", `{}`) // it is connected
	root := last(f, "Browser.getVersion").Session
	attached := func(session, id, kind string) {
		t.Helper()
		f.emit("", "Target.targetCreated", fmt.Sprintf(`{"targetInfo":{"targetId":%q,"type":%q,"url":""}}`, id, kind))
		f.emit(root, "Target.attachedToTarget", fmt.Sprintf(`{"sessionId":%q,"targetInfo":{"targetId":%q,"type":%q,"url":""},"waitingForDebugger":true}`, session, id, kind))
		c.recv()
	}
	paused := func(want bool) {
		t.Helper()
		if d.Paused("P") != want {
			t.Errorf("paused: %t, want %t", !want, want)
		}
	}
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"FIRST","type":"page","url":""}}`)
	attached("TAB", "T", "tab")
	when()
	blocked("a client has paused its tab")
	attached("PAGE", "P", "page")
	c.call(1, "TAB", "Runtime.runIfWaitingForDebugger", `{}`)
	blocked("a client prepares it")
	paused(true)
	if d.Paused("FIRST") {
		t.Error("another page counts as paused")
	}
	c.call(2, "PAGE", "Runtime.runIfWaitingForDebugger", `{}`)
	<-released
	paused(false)
	when()
	<-released // nobody keeps it paused any more

	attached("AGAIN", "P", "page")
	when()
	blocked("a client prepares it again")
	f.emit(root, "Target.detachedFromTarget", `{"sessionId":"AGAIN"}`)
	<-released
	c.recv() // the client's event of it, so that the next one that it gets is of LAST

	attached("LAST", "P", "page")
	when()
	blocked("a client prepares it")
	_ = c.Close(CloseNormal, "")
	<-released
}
