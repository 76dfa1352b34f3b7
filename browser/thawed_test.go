package browser

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// Changes while Chrome was parked are reported: an expired cookie, a tab whose renderer
// died, and what the pages' own timers changed.
func TestVerifyThawed(t *testing.T) {
	r := newRig(t)
	site := newSite(t, nil)
	b := r.fresh()
	for _, path := range []string{"/stays", "/dies?secret"} {
		r.open(b, site.url+path)
	}
	r.eval(b, site.url+"/stays", `document.cookie = "short=1; max-age=3600"; document.cookie = "long=1; max-age=9000";
		localStorage.setItem("step", "one"); localStorage.setItem("used", "1"); sessionStorage.setItem("once", "1"); 1`)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := b.VerifyThawed(within(t), doc)
	if err != nil || len(whole.Components)+len(whole.Differences) != 0 {
		t.Errorf("nothing has changed, but the verification says %+v, %v", whole, err)
	}
	if err := b.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := b.Thaw(within(t)); err != nil {
		t.Fatal(err)
	}
	// As a timer would, and time that has passed.
	r.eval(b, site.url+"/stays", `localStorage.setItem("step", "two"); localStorage.removeItem("used"); sessionStorage.removeItem("once");
		document.cookie = "short=; max-age=0"; 1`)
	b.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	yes := true
	at, err := cdp.Call(within(t), b.driver, target.AttachToTarget, target.AttachToTargetParams{
		TargetID: r.page(b, site.url+"/dies?secret"), Flatten: &yes})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.driver.Post(within(t), at.SessionID, page.Crash.Method, nil); err != nil {
		t.Fatal(err)
	}
	await(t, "the renderer is dead", func() bool {
		dead, err := capture.Crashed(within(t), b.driver)
		return err == nil && len(dead) == 1
	})
	found, err := b.VerifyThawed(within(t), doc)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Components {
		if c.Name == state.ComponentCookies && (c.Saved != 2 || c.Expired != 1 || c.Restored != 1 || c.Dropped != 0) ||
			c.Name == state.ComponentTabs && (c.Dropped != 1 || c.Reason.Code != report.ProcessDied || !strings.HasSuffix(c.Reason.Text, ": "+site.url+"/dies")) {
			t.Errorf("%+v", c)
		}
	}
	by := map[string]string{}
	for _, d := range found.Differences {
		by[d.Component] = d.By
	}
	if len(found.Components) != 2 || len(found.Differences) != 3 || by[state.ComponentTabs] != state.ByRestore ||
		by[state.ComponentLocalStorage] != state.BySite || by[state.ComponentSessionStorage] != state.BySite || found.OK() {
		t.Errorf("%s", got)
	}
}
