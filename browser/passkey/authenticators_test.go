package passkey

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webauthn"

	"github.com/stasisd/stasis/browser/targetinit"
)

// Authenticators of closed pages are forgotten, except the last ones, whose events may
// still arrive.
func TestAuthenticatorsAreForgotten(t *testing.T) {
	p := New(nil, nil, func() bool { return false })
	const pages = 3 * removedKept
	last := webauthn.AuthenticatorID("")
	for n := range pages {
		page := targetinit.NewTarget(noDriver{}, target.SessionID(fmt.Sprint(n)), &target.Info{TargetID: target.ID(fmt.Sprint(n))})
		last = webauthn.AuthenticatorID(fmt.Sprint(n))
		p.pages[page.SessionID()], p.made[last] = &authenticator{page: page, id: last}, true
		p.TargetClosed(t.Context(), page, nil)
	}
	if len(p.made) > removedKept || len(p.removed) > removedKept || !p.made[last] || len(p.pages) != 0 {
		t.Errorf("made: %d, removed: %d, last one known: %v; pages: %d", len(p.made), len(p.removed), p.made[last], len(p.pages))
	}
}

// noDriver is a connection that gets no commands.
type noDriver struct{ targetinit.Driver }

func (noDriver) Session(target.SessionID) cdp.Session { return nil }
