package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// sharing connects a client with shared contexts, and creates one.
func (r *rig) sharing(b *Browser) (c *conn, served chan error, contextID string) {
	r.t.Helper()
	c, served = newConn(), make(chan error, 1)
	go func() {
		served <- b.Serve(context.Background(), c, mux.ServeOptions{Admission: b.Admission(), Shared: &mux.SharedContexts{}})
	}()
	var made struct {
		Result struct{ BrowserContextID string }
	}
	if err := json.Unmarshal(c.call(r.t, `{"id":1,"method":"Target.createBrowserContext"}`), &made); err != nil {
		r.t.Fatal(err)
	}
	return c, served, made.Result.BrowserContextID
}

// The page of a client's context is saved with its localStorage, but it is no tab of the
// environment. It closes with its client, also if Chrome was still creating it.
func TestPagesOfSharedContexts(t *testing.T) {
	for name, start := range map[string]func(*rig) *Browser{"chrome": (*rig).fresh, "shell": (*rig).shell} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := newSite(t, map[string]string{"/one": "One", "/test": "Test"})
			b := start(r)
			r.open(b, s.url+"/one")
			c, served, id := r.sharing(b)
			c.call(t, fmt.Sprintf(`{"id":2,"method":"Target.createTarget","params":{"url":%q,"browserContextId":%q}}`, s.url+"/test", id))
			r.eval(b, s.url+"/test", `localStorage.written = "by a test"; 1`)
			var doc state.Document
			await(t, "the saved tab", func() bool {
				var err error
				if doc, err = b.Capture(within(t)); err != nil {
					t.Fatal(err)
				}
				return len(doc.Local) == 1
			})
			if len(doc.Tabs) != 1 || doc.Tabs[0].URL != s.url+"/one" || !doc.Tabs[0].Active {
				t.Errorf("saved tabs: %+v", doc.Tabs)
			}
			if got := doc.Local[0].Items; len(got) != 1 || got[0].Value != "by a test" {
				t.Errorf("saved localStorage: %+v", got)
			}
			for i := range 5 {
				c.in <- fmt.Appendf(nil, `{"id":%d,"method":"Target.createTarget","params":{"url":"about:blank","browserContextId":%q}}`, 10+i, id)
			}
			c.in <- []byte(`{"id":20,"method":"Browser.close"}`) // closes the connection
			if err := <-served; err != nil {
				t.Error(err)
			}
			await(t, "the client's pages have closed", func() bool {
				pages, err := b.Pages(within(t))
				return err == nil && len(pages) == 1 && pages[0].URL == s.url+"/one"
			})
		})
	}
}
