package passkey

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webauthn"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/targetinit"
	"github.com/stasisd/stasis/state"
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

// A page has written a large blob, which nobody has read yet, when another page signs in. The blob
// is recorded, and both pages have it.
func TestBlobBesideASignature(t *testing.T) {
	id := []byte("id")
	with := func(count int64, blob string) *held {
		return &held{[]credential{toCDP(state.Passkey{ID: id, SignCount: count, LargeBlob: []byte(blob)})}}
	}
	d := blobDriver{held: map[target.SessionID]*held{"writer": with(1, "large"), "other": with(2, "")}}
	p := New(nil, []state.Passkey{{ID: id, SignCount: 1}}, func() bool { return false })
	for s := range d.held {
		page := targetinit.NewTarget(d, s, &target.Info{TargetID: target.ID(s)})
		p.pages[s], p.made[webauthn.AuthenticatorID(s)] = &authenticator{page: page, id: webauthn.AuthenticatorID(s)}, true
	}
	p.mirror(t.Context(), mux.Event{Method: webauthn.CredentialAsserted.Method, SessionID: "other",
		Params: []byte(`{"authenticatorId": "other", "credential": {"credentialId": "aWQ=", "signCount": 2}}`)})
	if c := p.Credentials()[0]; c.SignCount != 2 || string(c.LargeBlob) != "large" {
		t.Errorf("recorded: %d, %q", c.SignCount, c.LargeBlob)
	}
	for s, h := range d.held {
		if c := h.Credentials; len(c) != 1 || c[0].SignCount != 2 || string(c[0].LargeBlob) != "large" {
			t.Errorf("%s has %+v", s, c)
		}
	}
}

// held is what an authenticator has.
type held struct {
	Credentials []credential `json:"credentials"`
}

// blobDriver is a connection to pages with authenticators.
type blobDriver struct {
	targetinit.Driver
	held map[target.SessionID]*held
}

func (d blobDriver) Session(s target.SessionID) cdp.Session { return blobSession{held: d.held[s]} }

func (d blobDriver) Post(_ context.Context, s target.SessionID, method string, _ any) error {
	if method == webauthn.RemoveCredential.Method {
		d.held[s].Credentials = nil
	}
	return nil
}

type blobSession struct {
	cdp.Session
	held *held
}

func (s blobSession) Call(_ context.Context, method string, params, result any) error {
	switch method {
	case webauthn.GetCredentials.Method:
		raw, err := json.Marshal(s.held)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, result)
	case webauthn.AddCredential.Method:
		s.held.Credentials = append(s.held.Credentials, params.(addCredential).Credential)
	}
	return nil
}
