package browser

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// worlds counts the script worlds in a tab, including its own.
func (r *rig) worlds(b *Browser, url string) int {
	r.t.Helper()
	ctx := within(r.t)
	yes := true
	at, err := cdp.Call(ctx, b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: r.page(b, url), Flatten: &yes})
	if err != nil {
		r.t.Fatal(err)
	}
	s := b.driver.Session(at.SessionID)
	events, stop := s.Subscribe(runtime.ExecutionContextCreated.Method)
	defer stop()
	// Chrome reports all existing worlds before it answers.
	if _, err := cdp.Call(ctx, s, runtime.Enable, cdp.Empty{}); err != nil {
		r.t.Fatal(err)
	}
	if _, err := cdp.Call(ctx, b.driver, target.DetachFromTarget, target.DetachFromTargetParams(at)); err != nil {
		r.t.Fatal(err)
	}
	seen := map[runtime.ExecutionContextID]bool{}
	for e := range events {
		var made runtime.EventExecutionContextCreated
		if err := json.Unmarshal(e, &made); err != nil {
			r.t.Fatal(err)
		}
		seen[made.Context.ID] = true
	}
	return len(seen)
}

// Finding the tab in front, however often, leaves nothing in any tab. A page that claims
// to be visible is not believed.
func TestFrontCreatesNoScriptWorld(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/liar": `<script>Object.defineProperty(document, "visibilityState", {get: () => "visible"})</script>`})
	b := r.fresh()
	r.open(b, s.url+"/liar")
	r.open(b, s.url+"/front")
	for range 5 {
		if _, url, _, err := b.Screenshot(within(t)); err != nil || url != s.url+"/front" {
			t.Fatalf("a screenshot of %q, %v", url, err)
		}
		if _, err := b.Capture(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/liar", "/front"} {
		if n := r.worlds(b, s.url+path); n != 1 {
			t.Errorf("%s has %d worlds", path, n)
		}
	}
}
