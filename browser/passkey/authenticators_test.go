package passkey

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webauthn"

	"github.com/stasisd/stasis/browser/targetinit"
)

// Authenticators of pages that have gone are forgotten, but for the last ones, whose
// events may still be on their way.
func TestAuthenticatorsAreForgotten(t *testing.T) {
	p := New(nil, nil, func() bool { return false })
	const pages = 3 * removedKept
	last := webauthn.AuthenticatorID("")
	for n := range pages {
		page := targetinit.NewTarget(noDriver{}, target.SessionID(fmt.Sprint(n)), &target.Info{TargetID: target.ID(fmt.Sprint(n))})
		last = webauthn.AuthenticatorID(fmt.Sprint(n))
		p.pages[page.SessionID()], p.made[last] = &authenticator{page: page, id: last}, true
		p.Gone(t.Context(), page, nil)
	}
	if len(p.made) > removedKept || len(p.removed) > removedKept || !p.made[last] || len(p.pages) != 0 {
		t.Errorf("%d are known, %d as gone, the last one %v; %d pages", len(p.made), len(p.removed), p.made[last], len(p.pages))
	}
}

// noDriver is a connection that nothing is asked of.
type noDriver struct{ targetinit.Driver }

func (noDriver) Session(target.SessionID) cdp.Session { return nil }
