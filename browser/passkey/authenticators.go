// Package passkey gives pages a virtual authenticator (CDP WebAuthn), and keeps the
// credentials that sites register.
//
// Chrome has one authenticator for each page and its frames, in whatever processes they
// are. This package makes them act as one: what is registered, used or deleted in one
// page is mirrored to the others. Chrome can remove a page's authenticator when a session
// of the page ends. So authenticators are repaired when clients come and go, and [Reader]
// keeps the daemon's own sessions attached.
package passkey

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

	"github.com/stasisd/stasis/browser/targetinit"
	"github.com/stasisd/stasis/state"
)

// Authenticators is the [targetinit.Setup] that gives every page a virtual authenticator.
// Pages of contexts that clients made get none. Its methods are safe for concurrent use.
type Authenticators struct {
	work   sync.WaitGroup // the goroutine that handles the authenticators' events
	once   sync.Once
	reader *Reader
	frozen func() bool // whether Chrome is frozen

	repairs chan struct{} // an authenticator may have been removed

	leaving  sync.RWMutex // read-locked while a client's sessions end, until the authenticators are repaired
	chromeMu sync.Mutex   // held during commands to Chrome; a frozen Chrome does not answer
	paused   int          // number of callers that have paused repairs; guarded by chromeMu

	mu          sync.Mutex      // guards the fields below; never held for long
	credentials []state.Passkey // in the order of their registration
	refused     map[string]bool // IDs of credentials that Chrome refused
	pages       map[target.SessionID]*authenticator
	made        map[webauthn.AuthenticatorID]bool // IDs of authenticators made here; of removed ones, only the last
	removed     []webauthn.AuthenticatorID        // authenticators made here and removed since, oldest first; at most removedKept
}

// answerDeadline bounds Chrome's answer for one page's authenticator. It takes
// milliseconds; with large blobs on a busy machine seconds, because a separate process
// packs them. If the authenticator is removed meanwhile, Chrome never answers, but it
// refuses the next command. So a reading begins again after askAgain.
const (
	answerDeadline = 3 * time.Second
	askAgain       = 2 * time.Second
)

// removedKept is the number of removed authenticators to remember. Chrome reports the
// last events of a closing page at once.
const removedKept = 1024

// authenticator is a page's authenticator. An empty ID means that there is none yet.
type authenticator struct {
	page *targetinit.Target
	id   webauthn.AuthenticatorID
}

// New makes the setup with initial credentials. driver is the connection over which the
// daemon reads pages. frozen reports whether Chrome is frozen.
func New(driver Driver, credentials []state.Passkey, frozen func() bool) *Authenticators {
	p := &Authenticators{frozen: frozen, credentials: slices.Clone(credentials), refused: map[string]bool{},
		pages: map[target.SessionID]*authenticator{}, made: map[webauthn.AuthenticatorID]bool{}, repairs: make(chan struct{}, 1)}
	p.reader = newReader(driver, p.has)
	return p
}

// Wants reports whether a target gets an authenticator. Pages do, for all of their
// frames.
func (p *Authenticators) Wants(kind string) bool { return kind == "page" }

// Initialise gives the page an authenticator with all credentials. The browser process
// answers these commands while the page waits.
func (p *Authenticators) Initialise(ctx context.Context, t *targetinit.Target) {
	p.once.Do(func() {
		events, stop := t.Events(webauthn.CredentialAdded.Method, webauthn.CredentialUpdated.Method,
			webauthn.CredentialAsserted.Method, webauthn.CredentialDeleted.Method)
		ctx := context.WithoutCancel(ctx) // the goroutine ends with the connection
		p.work.Go(func() {
			defer stop()
			p.follow(ctx, events)
		})
	})
	contexts, err := cdp.Call(ctx, t.Browser(), target.GetBrowserContexts, cdp.Empty{})
	if err != nil || slices.Contains(contexts.BrowserContextIDs, t.Info().BrowserContextID) {
		return
	}
	p.chromeMu.Lock()
	defer p.chromeMu.Unlock()
	p.mu.Lock()
	p.pages[t.SessionID()] = &authenticator{page: t}
	p.mu.Unlock()
	p.install(ctx, t)
}

// install creates a page's authenticator; the caller holds chromeMu. A closed page needs
// none. If Chrome does not create one in time, the next repair tries again.
func (p *Authenticators) install(ctx context.Context, t *targetinit.Target) {
	id, err := add(ctx, t)
	if err != nil {
		return
	}
	d := &authenticator{page: t, id: id}
	p.mu.Lock()
	if p.pages[t.SessionID()] == nil {
		p.mu.Unlock()
		return // it has been closed meanwhile
	}
	p.forget(p.pages[t.SessionID()])
	p.pages[t.SessionID()], p.made[id] = d, true
	all := slices.Clone(p.credentials)
	p.mu.Unlock()
	for _, c := range all {
		err := p.addTo(ctx, d, c)
		switch {
		case err == nil:
			continue
		case !refusal(err):
			return // the next repair replaces the authenticator
		}
		if _, gone := d.read(ctx); gone != nil {
			return // the authenticator is the cause; its successor gets all credentials
		}
		p.mu.Lock()
		p.refused[string(c.ID)] = true
		p.mu.Unlock()
	}
}

// addTo adds a credential to an authenticator. Without an answer, the contents of the
// authenticator are unknown: the next repair replaces it.
func (p *Authenticators) addTo(ctx context.Context, d *authenticator, c state.Passkey) error {
	ctx, cancel := context.WithTimeout(ctx, answerDeadline)
	defer cancel()
	err := d.page.Call(ctx, webauthn.AddCredential.Method, addCredential{d.id, toCDP(c)}, nil)
	if err != nil && !refusal(err) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pages[d.page.SessionID()] == d {
			p.forget(d)
			p.pages[d.page.SessionID()] = &authenticator{page: d.page}
		}
	}
	return err
}

// refusal reports whether err is an error that Chrome returned.
func refusal(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused)
}

// add creates an empty authenticator for a page.
func add(ctx context.Context, t *targetinit.Target) (webauthn.AuthenticatorID, error) {
	ctx, cancel := context.WithTimeout(ctx, answerDeadline)
	defer cancel()
	if _, err := cdp.Call(ctx, t, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		return "", err
	}
	made, err := cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, options())
	if refusal(err) {
		// A client has left its own authenticator there, and Chrome allows one of each
		// transport.
		_, _ = cdp.Call(ctx, t, webauthn.Disable, cdp.Empty{})
		_, _ = cdp.Call(ctx, t, webauthn.Enable, webauthn.EnableParams{})
		made, err = cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, options())
	}
	return made.AuthenticatorID, err
}

// options returns the options of every page's authenticator.
func options() webauthn.AddVirtualAuthenticatorParams {
	return webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21, // large blobs need it
		Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
		IsUserVerified: true, AutomaticPresenceSimulation: true, HasLargeBlob: true,
		// Credentials are saved with the environment, so they count as backed up. PRF is
		// left out: Chrome does not reveal its secret, so it could not be restored.
		DefaultBackupEligibility: true, DefaultBackupState: true,
	}}
}

// Renew does nothing: authenticators are repaired when a client leaves.
func (p *Authenticators) Renew(context.Context, *targetinit.Target) {}

// TargetClosed forgets the authenticator of a closed page.
func (p *Authenticators) TargetClosed(_ context.Context, closed *targetinit.Target, _ []*targetinit.Target) {
	p.mu.Lock()
	p.forget(p.pages[closed.SessionID()])
	delete(p.pages, closed.SessionID())
	p.mu.Unlock()
	p.reader.forget(closed.Info().TargetID)
}

// forget marks a page's authenticator, if it has one, as removed or replaced. Its ID is
// remembered for a while. The caller holds mu.
func (p *Authenticators) forget(d *authenticator) {
	if d == nil || d.id == "" {
		return
	}
	if p.removed = append(p.removed, d.id); len(p.removed) > removedKept {
		delete(p.made, p.removed[0])
		p.removed = p.removed[1:]
	}
}

// read returns the credentials that the authenticator holds now.
func (d *authenticator) read(ctx context.Context) ([]*webauthn.Credential, error) {
	got, err := d.readWithin(ctx, askAgain)
	if err != nil && !refusal(err) {
		got, err = d.readWithin(ctx, answerDeadline)
	}
	return got, err
}

func (d *authenticator) readWithin(ctx context.Context, deadline time.Duration) ([]*webauthn.Credential, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	got, err := cdp.Call(ctx, d.page, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: d.id})
	if err != nil {
		return nil, err
	}
	return got.Credentials, nil
}

// all returns the pages' authenticators, in no particular order.
func (p *Authenticators) all() []*authenticator {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.pages))
}

// Credentials returns the environment's credentials as far as known. It does not ask
// Chrome, which may be dead.
func (p *Authenticators) Credentials() []state.Passkey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.credentials)
}

// Refused returns the IDs of the credentials that Chrome refused.
func (p *Authenticators) Refused() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.refused)
}

// Wait returns when the handling of events has ended, after the browser's end.
func (p *Authenticators) Wait() { p.work.Wait() }
