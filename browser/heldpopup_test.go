package browser

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/target"
)

// A pop-up that a client keeps paused at its start answers nothing. Screenshots and
// navigations use the tab that was in front before it.
func TestHeldPopUp(t *testing.T) {
	r, s := newRigOfEither(t), newSite(t, nil)
	b := r.fresh()
	opener := s.url + "/one"
	r.open(b, opener)
	w := r.connect(b)
	at := w.answer(w.send("", target.AttachToTarget.Method, fmt.Sprintf(`{"targetId":%q,"flatten":true}`, r.page(b, opener))))
	page, _ := at["sessionId"].(string)
	w.answer(w.send("", target.SetAutoAttach.Method, `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true}`))
	w.send(page, "Runtime.evaluate", fmt.Sprintf(`{"expression":"window.open('%s')","userGesture":true}`, s.url+"/two"))
	await(t, "the held pop-up", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.ContainsFunc(w.got, func(m map[string]any) bool {
			params, _ := m["params"].(map[string]any)
			return params["waitingForDebugger"] == true
		})
	})
	if _, url, _, err := b.Screenshot(within(t)); err != nil || url != opener {
		t.Errorf("a screenshot of %q: %v", url, err)
	}
	if at, err := b.Navigate(within(t), s.url+"/three"); err != nil || at != s.url+"/three" {
		t.Errorf("a navigation to %q: %v", at, err)
	}
}
