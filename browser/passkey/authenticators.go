// Package passkey gives pages a virtual authenticator (CDP WebAuthn), and keeps the
// credentials that sites register.
//
// Chrome has one authenticator for each page and its frames, whatever process they
// are in. Here they act as one: what is registered, used or deleted in one page is
// mirrored to the others. Chrome takes an authenticator away with sessions of its
// page, so it is given again when clients come and go, and [Reader] keeps the
// daemon's own sessions attached.
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

// Authenticators is the [targetinit.Setup] that gives every page a virtual
// authenticator. Pages of contexts that clients made have none. Its methods are safe
// for concurrent use.
type Authenticators struct {
	work   sync.WaitGroup // follows the authenticators' events
	once   sync.Once
	reader *Reader
	frozen func() bool // whether Chrome is

	repairs chan struct{} // an authenticator may have gone

	leaving sync.RWMutex // read-locked while a client's sessions go, until what went with them is repaired
	asking  sync.Mutex   // held while Chrome is asked; a frozen one keeps silent
	paused  int          // how many want nothing repaired; guarded by asking

	mu          sync.Mutex      // guards what follows, and is never held for long
	credentials []state.Passkey // in the order of their registration
	refused     map[string]bool // IDs of those that Chrome does not take
	pages       map[target.SessionID]*authenticator
	made        map[webauthn.AuthenticatorID]bool // those made here; of those that have gone, the last
	removed     []webauthn.AuthenticatorID        // those made here that have gone, oldest first; at most removedKept
}

// answerDeadline bounds how long Chrome may take to answer for one page's
// authenticator. It takes milliseconds, a second on a busy machine where there are
// large blobs, which a process of their own packs. It gives no answer at all where
// the authenticator is taken away meanwhile.
const answerDeadline = 2 * time.Second

// removedKept is how many authenticators are remembered that have gone. Chrome
// reports at once what a page did at its end.
const removedKept = 1024

// authenticator is one page's; without an ID there is none yet.
type authenticator struct {
	page *targetinit.Target
	id   webauthn.AuthenticatorID
}

// New makes the setup with credentials to begin with. driver is the connection by
// which others read the pages, and frozen reports whether Chrome is frozen.
func New(driver Driver, credentials []state.Passkey, frozen func() bool) *Authenticators {
	p := &Authenticators{frozen: frozen, credentials: slices.Clone(credentials), refused: map[string]bool{},
		pages: map[target.SessionID]*authenticator{}, made: map[webauthn.AuthenticatorID]bool{}, repairs: make(chan struct{}, 1)}
	p.reader = newReader(driver, p.has)
	return p
}

// Wants reports whether a target has an authenticator: pages have one, with all of
// their frames.
func (p *Authenticators) Wants(kind string) bool { return kind == "page" }

// Initialise gives the page an authenticator with all credentials. Chrome answers
// these commands by itself, while the page waits.
func (p *Authenticators) Initialise(ctx context.Context, t *targetinit.Target) {
	p.once.Do(func() {
		events, stop := t.Events(webauthn.CredentialAdded.Method, webauthn.CredentialUpdated.Method,
			webauthn.CredentialAsserted.Method, webauthn.CredentialDeleted.Method)
		ctx := context.WithoutCancel(ctx) // it ends with the connection
		p.work.Go(func() {
			defer stop()
			p.follow(ctx, events)
		})
	})
	contexts, err := cdp.Call(ctx, t.Browser(), target.GetBrowserContexts, cdp.Empty{})
	if err != nil || slices.Contains(contexts.BrowserContextIDs, t.Info().BrowserContextID) {
		return
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	p.mu.Lock()
	p.pages[t.SessionID()] = &authenticator{page: t}
	p.mu.Unlock()
	p.install(ctx, t)
}

// install makes a page's authenticator; the caller holds asking. A page that
// has gone needs none; one that Chrome gave none in time is tried again when
// the authenticators are next looked after.
func (p *Authenticators) install(ctx context.Context, t *targetinit.Target) {
	id, err := add(ctx, t)
	if err != nil {
		return
	}
	d := &authenticator{page: t, id: id}
	p.mu.Lock()
	if p.pages[t.SessionID()] == nil {
		p.mu.Unlock()
		return // it has gone meanwhile
	}
	p.forget(p.pages[t.SessionID()])
	p.pages[t.SessionID()], p.made[id] = d, true
	all := slices.Clone(p.credentials)
	p.mu.Unlock()
	for _, c := range all {
		err := p.give(ctx, d, c)
		if err == nil {
			continue
		}
		if _, gone := d.read(ctx); gone != nil {
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
func (p *Authenticators) give(ctx context.Context, d *authenticator, c state.Passkey) error {
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

// refusal says whether Chrome has answered, with an error.
func refusal(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused)
}

// add makes an empty authenticator for a page.
func add(ctx context.Context, t *targetinit.Target) (webauthn.AuthenticatorID, error) {
	ctx, cancel := context.WithTimeout(ctx, answerDeadline)
	defer cancel()
	if _, err := cdp.Call(ctx, t, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		return "", err
	}
	made, err := cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, options())
	if refusal(err) {
		// A client has left one of its own there: Chrome allows one of a kind.
		_, _ = cdp.Call(ctx, t, webauthn.Disable, cdp.Empty{})
		_, _ = cdp.Call(ctx, t, webauthn.Enable, webauthn.EnableParams{})
		made, err = cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, options())
	}
	return made.AuthenticatorID, err
}

// options are those of every page's authenticator.
func options() webauthn.AddVirtualAuthenticatorParams {
	return webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21, // large blobs need it
		Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
		IsUserVerified: true, AutomaticPresenceSimulation: true, HasLargeBlob: true,
		// What is saved with the environment is backed up. PRF is left out:
		// Chrome does not give its secret, so it could not be restored.
		DefaultBackupEligibility: true, DefaultBackupState: true,
	}}
}

// Renew does nothing: authenticators are repaired as each client leaves.
func (p *Authenticators) Renew(context.Context, *targetinit.Target) {}

// Gone forgets the authenticator of a page that has gone.
func (p *Authenticators) Gone(_ context.Context, gone *targetinit.Target, _ []*targetinit.Target) {
	p.mu.Lock()
	p.forget(p.pages[gone.SessionID()])
	delete(p.pages, gone.SessionID())
	p.mu.Unlock()
	p.reader.forget(gone.Info().TargetID)
}

// forget remembers the authenticator of a page, where it had one, for some time: it
// has gone, or another takes its place. The caller holds mu.
func (p *Authenticators) forget(d *authenticator) {
	if d == nil || d.id == "" {
		return
	}
	if p.removed = append(p.removed, d.id); len(p.removed) > removedKept {
		delete(p.made, p.removed[0])
		p.removed = p.removed[1:]
	}
}

// read gives the credentials that the authenticator holds now.
func (d *authenticator) read(ctx context.Context) ([]*webauthn.Credential, error) {
	ctx, cancel := context.WithTimeout(ctx, answerDeadline)
	defer cancel()
	got, err := cdp.Call(ctx, d.page, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: d.id})
	if err != nil {
		return nil, err
	}
	return got.Credentials, nil
}

// all are the pages' authenticators, in no order.
func (p *Authenticators) all() []*authenticator {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.pages))
}

// Credentials are those of the environment as far as is known without asking Chrome,
// which may be dead.
func (p *Authenticators) Credentials() []state.Passkey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.credentials)
}

// Refused are the IDs of the credentials that Chrome did not take.
func (p *Authenticators) Refused() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.refused)
}

// Wait returns when the events are no longer followed: after the browser's end.
func (p *Authenticators) Wait() { p.work.Wait() }
