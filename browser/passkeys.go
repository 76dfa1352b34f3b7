package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webauthn"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// passkeys is the setup that gives every page a virtual authenticator (CDP
// WebAuthn). Chrome has one for each page and its frames, whatever process they
// are in; here they are one: what is registered, used or deleted in one page is
// mirrored to the others. Pages of contexts that clients made have none.
type passkeys struct {
	work sync.WaitGroup // follows the authenticators' events
	once sync.Once

	stirred chan struct{} // a page's authenticator may have gone

	doing sync.Mutex // held while Chrome is asked; a frozen one keeps silent

	mu      sync.Mutex      // guards what follows, and is never held for long
	held    []state.Passkey // in the order of their registration
	refused map[string]bool // IDs of those that Chrome does not take
	devices map[target.SessionID]*device
	ours    map[webauthn.AuthenticatorID]bool // all that were ever made here
}

// device is one page's authenticator.
type device struct {
	page *attended
	id   webauthn.AuthenticatorID
}

func newPasskeys(held []state.Passkey) *passkeys {
	return &passkeys{held: slices.Clone(held), refused: map[string]bool{}, devices: map[target.SessionID]*device{},
		ours: map[webauthn.AuthenticatorID]bool{}, stirred: make(chan struct{}, 1)}
}

func (p *passkeys) wants(kind string) bool { return kind == "page" }

// arrive gives the page an authenticator with all credentials. Chrome answers
// these commands by itself, while the page waits.
func (p *passkeys) arrive(ctx context.Context, t *attended) {
	p.once.Do(func() {
		events, stop := t.driver.Events(webauthn.CredentialAdded.Method, webauthn.CredentialUpdated.Method,
			webauthn.CredentialAsserted.Method, webauthn.CredentialDeleted.Method)
		p.work.Go(func() {
			defer stop()
			p.follow(ctx, events)
		})
	})
	contexts, err := cdp.Call(ctx, t.driver, target.GetBrowserContexts, cdp.Empty{})
	if err != nil || slices.Contains(contexts.BrowserContextIDs, t.info.BrowserContextID) {
		return
	}
	p.doing.Lock()
	defer p.doing.Unlock()
	p.install(ctx, t)
}

// install makes a page's authenticator; the caller holds doing. A page that
// has gone needs none.
func (p *passkeys) install(ctx context.Context, t *attended) {
	if _, err := cdp.Call(ctx, t, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		return
	}
	made, err := cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, authenticator())
	if err != nil {
		// A client has left one of its own there: Chrome allows one of a kind.
		_, _ = cdp.Call(ctx, t, webauthn.Disable, cdp.Empty{})
		_, _ = cdp.Call(ctx, t, webauthn.Enable, webauthn.EnableParams{})
		if made, err = cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, authenticator()); err != nil {
			return
		}
	}
	p.mu.Lock()
	p.devices[t.id], p.ours[made.AuthenticatorID] = &device{page: t, id: made.AuthenticatorID}, true
	held := slices.Clone(p.held)
	p.mu.Unlock()
	for _, c := range held {
		err := t.Call(ctx, webauthn.AddCredential.Method, addCredential{made.AuthenticatorID, toCDP(c)}, nil)
		if err != nil && ctx.Err() == nil {
			p.mu.Lock()
			p.refused[string(c.ID)] = true
			p.mu.Unlock()
		}
	}
}

// authenticator is what every page is given.
func authenticator() webauthn.AddVirtualAuthenticatorParams {
	return webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21, // large blobs need it
		Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
		IsUserVerified: true, AutomaticPresenceSimulation: true, HasLargeBlob: true,
		// What is saved with the environment is backed up. PRF is left out:
		// Chrome does not give its secret, so it could not be restored.
		DefaultBackupEligibility: true, DefaultBackupState: true,
	}}
}

// renew is left to mend, which does not wait for the last client.
func (p *passkeys) renew(context.Context, *attended) {}

// stir has the authenticators looked after soon.
func (p *passkeys) stir() {
	select {
	case p.stirred <- struct{}{}:
	default: // it is to be done already
	}
}

// mend gives pages their authenticator again where it has gone. Chrome takes it
// away with any session of the page that ends after the page has navigated, and
// with a client's own WebAuthn.disable.
func (p *passkeys) mend(ctx context.Context) {
	p.doing.Lock()
	defer p.doing.Unlock()
	for _, d := range p.all() {
		if _, err := cdp.Call(ctx, d.page, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: d.id}); err == nil {
			continue
		}
		p.install(ctx, d.page)
	}
}

func (p *passkeys) depart(_ context.Context, gone *attended, _ []*attended) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.devices, gone.id)
}

// follow keeps the authenticators the same until they end.
func (p *passkeys) follow(ctx context.Context, events <-chan mux.Event) {
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			p.mirror(ctx, e)
		case <-p.stirred:
			p.mend(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// mirror takes over what a page did to a credential, and tells the others.
func (p *passkeys) mirror(ctx context.Context, e mux.Event) {
	var what struct {
		AuthenticatorID webauthn.AuthenticatorID `json:"authenticatorId"`
		CredentialID    []byte                   `json:"credentialId"`
		Credential      *webauthn.Credential     `json:"credential"`
	}
	if json.Unmarshal(e.Params, &what) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ours[what.AuthenticatorID] {
		return // a client's own
	}
	if what.Credential == nil {
		p.held = slices.DeleteFunc(p.held, func(c state.Passkey) bool { return bytes.Equal(c.ID, what.CredentialID) })
	} else {
		what.CredentialID = what.Credential.CredentialID
		p.take(fromCDP(what.Credential))
	}
	for _, d := range p.devices {
		if d.id == what.AuthenticatorID {
			continue
		}
		d.page.post(ctx, webauthn.RemoveCredential.Method, webauthn.RemoveCredentialParams{
			AuthenticatorID: d.id, CredentialID: what.CredentialID})
		if what.Credential != nil {
			d.page.post(ctx, webauthn.AddCredential.Method, addCredential{d.id, toCDP(fromCDP(what.Credential))})
		}
	}
}

// take notes a credential as it is now; the caller holds mu.
func (p *passkeys) take(c state.Passkey) {
	i := slices.IndexFunc(p.held, func(old state.Passkey) bool { return bytes.Equal(old.ID, c.ID) })
	if i < 0 {
		p.held = append(p.held, c)
		return
	}
	// Two pages that sign at once both count from the same number: the counter
	// of the environment never goes back.
	c.SignCount = max(c.SignCount, p.held[i].SignCount)
	p.held[i] = c
}

// read looks at every authenticator itself: an event may still be on its way.
func (p *passkeys) read(ctx context.Context) {
	for _, d := range p.all() {
		got, err := cdp.Call(ctx, d.page, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: d.id})
		if err != nil {
			continue // the events have told the rest
		}
		p.mu.Lock()
		for _, c := range got.Credentials {
			is := fromCDP(c)
			i := slices.IndexFunc(p.held, func(old state.Passkey) bool { return bytes.Equal(old.ID, is.ID) })
			if i < 0 || p.held[i].SignCount < is.SignCount {
				p.take(is)
			}
		}
		p.mu.Unlock()
	}
}

// all are the authenticators there are, in no order.
func (p *passkeys) all() []*device {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.devices))
}

// known is what is held without asking Chrome.
func (p *passkeys) known() []state.Passkey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.held)
}

// lost are the IDs of the credentials that Chrome did not take.
func (p *passkeys) lost() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.refused)
}

// addCredential are the parameters of WebAuthn.addCredential. The type of
// cdproto always names a key group too, and Chrome refuses that.
type addCredential struct {
	AuthenticatorID webauthn.AuthenticatorID `json:"authenticatorId"`
	Credential      credential               `json:"credential"`
}

type credential struct {
	ID             []byte `json:"credentialId"`
	Resident       bool   `json:"isResidentCredential"`
	RPID           string `json:"rpId"`
	PrivateKey     []byte `json:"privateKey"`
	UserHandle     []byte `json:"userHandle,omitempty"`
	SignCount      int64  `json:"signCount"`
	LargeBlob      []byte `json:"largeBlob"` // one without any, even an empty one, can be given none later
	BackupEligible bool   `json:"backupEligibility"`
	BackedUp       bool   `json:"backupState"`
	UserName       string `json:"userName,omitempty"`
	DisplayName    string `json:"userDisplayName,omitempty"`
}

func toCDP(c state.Passkey) credential {
	return credential{
		ID: c.ID, Resident: c.Resident, RPID: c.RPID, PrivateKey: c.PrivateKey, UserHandle: c.UserHandle, SignCount: c.SignCount,
		LargeBlob: c.LargeBlob, BackupEligible: c.BackupEligible, BackedUp: c.BackedUp, UserName: c.UserName, DisplayName: c.DisplayName,
	}
}

func fromCDP(c *webauthn.Credential) state.Passkey {
	return state.Passkey{
		ID: c.CredentialID, Resident: c.IsResidentCredential, RPID: c.RpID, PrivateKey: c.PrivateKey,
		UserHandle: c.UserHandle, SignCount: int64(c.SignCount), LargeBlob: c.LargeBlob,
		BackupEligible: c.BackupEligibility, BackedUp: c.BackupState, UserName: c.UserName, DisplayName: c.UserDisplayName,
	}
}
