package browser

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// While a client is connected, every tab is visible, is focused and draws frames: restored
// ones, those that clients create and those that pages open. The tab that came to the
// front last counts as in front. Without clients only that tab runs at full speed.
func TestTabsRunWhileClientsAreConnected(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/": `<script>let drawn = 0; (function draw() { drawn++; requestAnimationFrame(draw); })()</script>`})
	b := r.fresh()
	one, two, three := s.url+"/?one", s.url+"/?two", s.url+"/?three"
	r.open(b, one)
	r.open(b, two)
	visible := func(url, want string) {
		t.Helper()
		await(t, url+" is "+want, func() bool {
			return r.eval(b, url, "`${document.visibilityState} ${document.hasFocus()}`") == want
		})
	}
	front := func(want string) {
		t.Helper()
		doc, err := b.Capture(within(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, tab := range doc.Tabs {
			if tab.Active != (tab.URL == want) {
				t.Errorf("%s is active: %t; %s is in front", tab.URL, tab.Active, want)
			}
		}
		if _, at, _, err := b.Screenshot(within(t)); err != nil || at != want {
			t.Errorf("the screenshot shows %s, %v", at, err)
		}
	}
	serve := func() (*conn, func()) {
		c, served := newConn(), make(chan error, 1)
		go func() { served <- b.Serve(context.Background(), c, mux.ServeOptions{Admission: b.Admission()}) }()
		return c, func() {
			c.call(t, `{"id":99,"method":"Browser.close"}`)
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
	}
	const full, behind = "visible true", "hidden false"
	visible(one, behind)
	c, leave := serve()
	visible(one, full)
	visible(two, full)
	front(two)
	c.call(t, `{"id":1,"method":"Target.createTarget","params":{"url":"`+three+`"}}`)
	visible(three, full)
	front(three)
	visible(two, full)
	r.eval(b, one, "drawn = 0")
	await(t, "a tab behind draws", func() bool { return r.eval(b, one, "drawn > 1") == "true" })
	if got := r.eval(b, one, `new Promise(done => setTimeout(() => done(String(open("/?four") !== null))))`); got != "true" {
		t.Errorf("the page opened a window: %s", got)
	}
	visible(s.url+"/?four", full)
	// A tab that opens blank in the background gets full speed too, also if a client navigates it.
	var made struct {
		Result struct{ TargetID, SessionID string }
	}
	for _, url := range []string{"about:blank", s.url + "/?five"} {
		if err := json.Unmarshal(c.call(t, `{"id":3,"method":"Target.createTarget","params":{"url":"about:blank","background":true}}`), &made); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(c.call(t, `{"id":4,"method":"Target.attachToTarget","params":{"flatten":true,"targetId":"`+made.Result.TargetID+`"}}`), &made); err != nil {
			t.Fatal(err)
		}
		if url != "about:blank" {
			c.call(t, `{"id":5,"sessionId":"`+made.Result.SessionID+`","method":"Page.navigate","params":{"url":"`+url+`"}}`)
		}
		await(t, url+" in the background is visible", func() bool {
			return strings.Contains(string(c.call(t, `{"id":6,"sessionId":"`+made.Result.SessionID+`","method":"Runtime.evaluate","params":{"expression":"document.visibilityState"}}`)), `"visible"`)
		})
	}
	c.call(t, `{"id":2,"method":"Target.activateTarget","params":{"targetId":"`+string(r.page(b, two))+`"}}`)
	front(two)
	// Another client may leave; the last one's end slows the tabs down.
	_, leaveToo := serve()
	leaveToo()
	visible(one, full)
	leave()
	visible(one, behind)
	visible(three, behind)
	front(two)
	_, leave = serve()
	visible(one, full)
	leave()
	if how, err := b.Close(within(t)); err != nil || how != state.DatadirClean {
		t.Errorf("closed %s, %v", how, err)
	}
}
