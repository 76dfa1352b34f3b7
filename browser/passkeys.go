package browser

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/cdproto/webauthn"

	"github.com/stasisd/stasis/state"
)

// passkeys is the setup that gives every page a virtual authenticator (CDP
// WebAuthn). Chrome has one for each page and its frames, whatever process they
// are in; here they are one: what is registered, used or deleted in one page is
// mirrored to the others. Pages of contexts that clients made have none.
type passkeys struct {
	work   sync.WaitGroup // follows the authenticators' events
	once   sync.Once
	reader *staying
	frozen func() bool // whether Chrome is

	stirred chan struct{} // a page's authenticator may have gone

	parting sync.RWMutex // read-locked while a client's sessions go, until what went with them is mended
	doing   sync.Mutex   // held while Chrome is asked; a frozen one keeps silent
	resting int          // how many want nothing mended; guarded by doing

	mu      sync.Mutex      // guards what follows, and is never held for long
	held    []state.Passkey // in the order of their registration
	refused map[string]bool // IDs of those that Chrome does not take
	devices map[target.SessionID]*device
	ours    map[webauthn.AuthenticatorID]bool // those made here, and of those that have gone the last
	gone    []webauthn.AuthenticatorID        // those of ours that have gone, oldest first; at most goneKept
}

// authenticatorDeadline bounds how long Chrome may take to answer for one
// page's authenticator. It takes milliseconds, a second on a busy machine where
// there are large blobs, which a process of their own packs, and gives no answer
// at all where the authenticator is taken away meanwhile.
const authenticatorDeadline = 2 * time.Second

// goneKept is how many authenticators are remembered that have gone. What a page
// did at its end Chrome tells at once.
const goneKept = 1024

// device is one page's authenticator; without an ID there is none yet.
type device struct {
	page *attended
	id   webauthn.AuthenticatorID
}

func newPasskeys(held []state.Passkey, frozen func() bool) *passkeys {
	return &passkeys{frozen: frozen, held: slices.Clone(held), refused: map[string]bool{}, devices: map[target.SessionID]*device{},
		ours: map[webauthn.AuthenticatorID]bool{}, stirred: make(chan struct{}, 1)}
}

func (p *passkeys) wants(kind string) bool { return kind == "page" }

// arrive gives the page an authenticator with all credentials. Chrome answers
// these commands by itself, while the page waits.
func (p *passkeys) arrive(ctx context.Context, t *attended) {
	p.once.Do(func() {
		events, stop := t.driver.Events(webauthn.CredentialAdded.Method, webauthn.CredentialUpdated.Method,
			webauthn.CredentialAsserted.Method, webauthn.CredentialDeleted.Method)
		ctx := context.WithoutCancel(ctx) // it ends with the driver
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
	p.mu.Lock()
	p.devices[t.id] = &device{page: t}
	p.mu.Unlock()
	p.install(ctx, t)
}

// install makes a page's authenticator; the caller holds doing. A page that
// has gone needs none; one that Chrome gave none in time is tried again when
// the authenticators are next looked after.
func (p *passkeys) install(ctx context.Context, t *attended) {
	id, err := newAuthenticator(ctx, t)
	if err != nil {
		return
	}
	d := &device{page: t, id: id}
	p.mu.Lock()
	if p.devices[t.id] == nil {
		p.mu.Unlock()
		return // it has gone meanwhile
	}
	p.forget(p.devices[t.id])
	p.devices[t.id], p.ours[id] = d, true
	held := slices.Clone(p.held)
	p.mu.Unlock()
	for _, c := range held {
		err := p.give(ctx, d, c)
		if err == nil {
			continue
		}
		if _, gone := d.credentials(ctx); gone != nil {
			return // it was the authenticator; the next one is given them all
		}
		p.mu.Lock()
		p.refused[string(c.ID)] = true
		p.mu.Unlock()
	}
}

// give adds a credential to an authenticator. Without an answer nobody knows
// what the authenticator holds: the page is given another when it is next looked
// after.
func (p *passkeys) give(ctx context.Context, d *device, c state.Passkey) error {
	ctx, cancel := context.WithTimeout(ctx, authenticatorDeadline)
	defer cancel()
	err := d.page.Call(ctx, webauthn.AddCredential.Method, addCredential{d.id, toCDP(c)}, nil)
	if err != nil && !refusal(err) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.devices[d.page.id] == d {
			p.forget(d)
			p.devices[d.page.id] = &device{page: d.page}
		}
	}
	return err
}

// refusal says whether Chrome has answered, with an error.
func refusal(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused)
}

// newAuthenticator makes an empty authenticator for a page.
func newAuthenticator(ctx context.Context, t *attended) (webauthn.AuthenticatorID, error) {
	ctx, cancel := context.WithTimeout(ctx, authenticatorDeadline)
	defer cancel()
	if _, err := cdp.Call(ctx, t, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		return "", err
	}
	made, err := cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, authenticator())
	if refusal(err) {
		// A client has left one of its own there: Chrome allows one of a kind.
		_, _ = cdp.Call(ctx, t, webauthn.Disable, cdp.Empty{})
		_, _ = cdp.Call(ctx, t, webauthn.Enable, webauthn.EnableParams{})
		made, err = cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, authenticator())
	}
	return made.AuthenticatorID, err
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

func (p *passkeys) depart(_ context.Context, gone *attended, _ []*attended) {
	p.mu.Lock()
	p.forget(p.devices[gone.id])
	delete(p.devices, gone.id)
	p.mu.Unlock()
	p.reader.forget(gone.info.TargetID)
}

// forget remembers the authenticator of a page, where it had one, for some time: it
// has gone, or another takes its place. The caller holds mu.
func (p *passkeys) forget(d *device) {
	if d == nil || d.id == "" {
		return
	}
	if p.gone = append(p.gone, d.id); len(p.gone) > goneKept {
		delete(p.ours, p.gone[0])
		p.gone = p.gone[1:]
	}
}

// credentials are those that the authenticator holds now.
func (d *device) credentials(ctx context.Context) ([]*webauthn.Credential, error) {
	ctx, cancel := context.WithTimeout(ctx, authenticatorDeadline)
	defer cancel()
	got, err := cdp.Call(ctx, d.page, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: d.id})
	if err != nil {
		return nil, err
	}
	return got.Credentials, nil
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
