package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webauthn"
)

// Authenticators of pages that have gone are forgotten, but for the last ones, whose
// events may still be on their way.
func TestAuthenticatorsAreForgotten(t *testing.T) {
	p := newPasskeys(nil, func() bool { return false })
	p.reader = newStaying(nil, p.has)
	const pages = 3 * goneKept
	last := webauthn.AuthenticatorID("")
	for n := range pages {
		page := &attended{id: target.SessionID(fmt.Sprint(n)), info: &target.Info{TargetID: target.ID(fmt.Sprint(n))}}
		last = webauthn.AuthenticatorID(fmt.Sprint(n))
		p.devices[page.id], p.ours[last] = &device{page: page, id: last}, true
		p.depart(t.Context(), page, nil)
	}
	if len(p.ours) > goneKept || len(p.gone) > goneKept || !p.ours[last] || len(p.devices) != 0 {
		t.Errorf("%d are known, %d as gone, the last one %v; %d pages", len(p.ours), len(p.gone), p.ours[last], len(p.devices))
	}
}
