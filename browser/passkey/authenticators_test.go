package passkey

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/chromedp/cdproto"
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
		return &held{Credentials: []credential{toCDP(state.Passkey{ID: id, SignCount: count, LargeBlob: []byte(blob)})}}
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

// A credential counts as refused only if Chrome refuses it, not if Chrome does not answer. The next
// repair then adds it.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := state.Passkey{ID: []byte("good")}, state.Passkey{ID: []byte("bad")}
		d := blobDriver{held: map[target.SessionID]*held{"page": {busy: map[string]bool{webauthn.AddCredential.Method: true}, refuses: "bad"}}}
		p := New(nil, []state.Passkey{good, bad}, func() bool { return false })
		page := targetinit.NewTarget(d, "page", &target.Info{TargetID: "page"})
		p.pages["page"] = &authenticator{page: page}
		p.install(t.Context(), page)
		if refused := p.Refused(); len(refused) > 0 {
			t.Errorf("without an answer: %v", refused)
		}
		d.held["page"].busy = nil
		p.repair(t.Context())
		if refused := p.Refused(); len(refused) != 1 || !refused["bad"] {
			t.Errorf("refused: %v", refused)
		}
		if c := d.held["page"].Credentials; len(c) != 1 || !bytes.Equal(c[0].ID, good.ID) {
			t.Errorf("the page has %+v", c)
		}
	})
}

// held is what an authenticator has.
type held struct {
	Credentials []credential    `json:"credentials"`
	busy        map[string]bool // commands that get no answer
	refuses     string          // the ID of a credential
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

func (s blobSession) Call(ctx context.Context, method string, params, result any) error {
	if s.held.busy[method] {
		<-ctx.Done()
		return ctx.Err()
	}
	switch method {
	case webauthn.AddVirtualAuthenticator.Method:
		s.held.Credentials = nil
		result.(*webauthn.AddVirtualAuthenticatorResult).AuthenticatorID = "made"
	case webauthn.GetCredentials.Method:
		if asked := params.(webauthn.GetCredentialsParams).AuthenticatorID; asked == "" {
			return &cdproto.Error{Message: "Could not find a Virtual Authenticator matching the ID"}
		}
		raw, err := json.Marshal(s.held)
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, result)
	case webauthn.AddCredential.Method:
		added := params.(addCredential).Credential
		if string(added.ID) == s.held.refuses {
			return &cdproto.Error{Message: "it is not valid"}
		}
		s.held.Credentials = append(s.held.Credentials, added)
	}
	return nil
}
