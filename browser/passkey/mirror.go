package passkey

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/webauthn"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// blobDelay is how long after a signature the authenticators are read again:
// a page writes a large blob with a second command, of which Chrome tells
// nothing. It takes milliseconds.
const blobDelay = 50 * time.Millisecond

// follow keeps the authenticators the same until they end.
func (p *Authenticators) follow(ctx context.Context, events <-chan mux.Event) {
	var written <-chan time.Time
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			p.mirror(ctx, e)
			if e.Method == webauthn.CredentialAsserted.Method {
				written = time.After(blobDelay)
			}
		case <-written:
			p.Read(ctx)
		case <-p.repairs:
			p.repair(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// mirror records what a page did to a credential, and applies it to the other pages.
func (p *Authenticators) mirror(ctx context.Context, e mux.Event) {
	var what struct {
		AuthenticatorID webauthn.AuthenticatorID `json:"authenticatorId"`
		CredentialID    []byte                   `json:"credentialId"`
		Credential      *webauthn.Credential     `json:"credential"`
	}
	if json.Unmarshal(e.Params, &what) != nil {
		return
	}
	p.asking.Lock() // a page that is being given its authenticator gets it whole
	defer p.asking.Unlock()
	p.mu.Lock()
	at := p.pages[e.SessionID]
	own := p.made[what.AuthenticatorID]
	p.mu.Unlock()
	if at != nil && at.id != what.AuthenticatorID {
		at = nil
	}
	switch {
	case !own: // a client's
	case what.Credential == nil:
		if at != nil && !p.echo(ctx, at, what.CredentialID) {
			p.deleted(ctx, at, what.CredentialID)
		}
	default:
		p.changed(ctx, at, what.Credential)
	}
}

// echo says whether a credential's deletion is one of those below: Chrome tells
// of them too, and the credential is there again by then. Where Chrome does not
// answer it is taken to be.
func (p *Authenticators) echo(ctx context.Context, at *authenticator, id []byte) bool {
	now, err := at.read(ctx)
	return err != nil || slices.ContainsFunc(now, func(c *webauthn.Credential) bool { return bytes.Equal(c.CredentialID, id) })
}

// deleted records a deletion and applies it to the other pages.
func (p *Authenticators) deleted(ctx context.Context, at *authenticator, id []byte) {
	p.mu.Lock()
	before := len(p.credentials)
	p.credentials = slices.DeleteFunc(p.credentials, func(c state.Passkey) bool { return bytes.Equal(c.ID, id) })
	fresh := len(p.credentials) < before
	p.mu.Unlock()
	if !fresh {
		return // it was mirrored here
	}
	for _, d := range p.all() {
		if d.id != at.id && d.id != "" {
			d.page.Post(ctx, webauthn.RemoveCredential.Method, webauthn.RemoveCredentialParams{AuthenticatorID: d.id, CredentialID: id})
		}
	}
}

// changed records a credential that was made, used or renamed, and applies it to the
// other pages.
func (p *Authenticators) changed(ctx context.Context, at *authenticator, is *webauthn.Credential) {
	from := webauthn.AuthenticatorID("")
	if at != nil {
		from = at.id
	}
	p.update(ctx, from, p.record(fromCDP(is), false))
}

// update gives a credential as it is now to all authenticators but one. It waits
// until they have it whole: Chrome adds the credential at once and its large
// blob later, and one that is read in between has an empty one.
func (p *Authenticators) update(ctx context.Context, from webauthn.AuthenticatorID, c state.Passkey) {
	var updates sync.WaitGroup
	for _, d := range p.all() {
		if d.id == from || d.id == "" {
			continue
		}
		updates.Go(func() {
			// Chrome has no command that changes one. The second does not wait for the first's answer.
			d.page.Post(ctx, webauthn.RemoveCredential.Method, webauthn.RemoveCredentialParams{AuthenticatorID: d.id, CredentialID: c.ID})
			_ = p.give(ctx, d, c) // what it lacks it is given when it is next looked after
		})
	}
	updates.Wait()
}

// record notes a credential and returns it as it is held now. An event lacks a
// blob that is being written; whole says that the blob was read.
func (p *Authenticators) record(c state.Passkey, whole bool) state.Passkey {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.find(c.ID)
	if i < 0 {
		p.credentials = append(p.credentials, c)
		return c
	}
	if old := p.credentials[i]; !whole {
		c.LargeBlob = old.LargeBlob
	}
	// Two pages that sign at once both count from the same number: the counter
	// of the environment never goes back.
	c.SignCount = max(c.SignCount, p.credentials[i].SignCount)
	p.credentials[i] = c
	return c
}

// find is where a credential is held, or -1. The caller holds mu.
func (p *Authenticators) find(id []byte) int {
	return slices.IndexFunc(p.credentials, func(c state.Passkey) bool { return bytes.Equal(c.ID, id) })
}

// Read asks every authenticator itself: an event may still be on its way,
// and Chrome has none for some things.
func (p *Authenticators) Read(ctx context.Context) {
	p.asking.Lock()
	defer p.asking.Unlock()
	for _, d := range p.all() {
		now, err := d.read(ctx)
		if err != nil {
			continue // the events have told the rest
		}
		for _, c := range now {
			if is := fromCDP(c); p.newer(is) {
				p.update(ctx, d.id, p.record(is, true))
			}
		}
	}
}

// newer reports whether what an authenticator holds is newer than what is held. One
// that has signed less does not know of the last signature yet.
func (p *Authenticators) newer(is state.Passkey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.find(is.ID)
	if i < 0 {
		return true
	}
	was := p.credentials[i]
	return is.SignCount > was.SignCount || is.SignCount == was.SignCount && !bytes.Equal(is.LargeBlob, was.LargeBlob)
}
