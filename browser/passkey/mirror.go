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

// blobDelay is the time after a signature at which the authenticators are read again. A
// page writes a large blob with a second command, for which Chrome sends no event. It
// takes milliseconds.
const blobDelay = 50 * time.Millisecond

// follow keeps the authenticators equal until their events end.
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

// mirror records what a page did to a credential and applies it to the other pages.
func (p *Authenticators) mirror(ctx context.Context, e mux.Event) {
	var what struct {
		AuthenticatorID webauthn.AuthenticatorID `json:"authenticatorId"`
		CredentialID    []byte                   `json:"credentialId"`
		Credential      *webauthn.Credential     `json:"credential"`
	}
	if json.Unmarshal(e.Params, &what) != nil {
		return
	}
	p.chromeMu.Lock() // lets an authenticator that is being filled get all credentials first
	defer p.chromeMu.Unlock()
	p.mu.Lock()
	at := p.pages[e.SessionID]
	own := p.made[what.AuthenticatorID]
	p.mu.Unlock()
	if at != nil && at.id != what.AuthenticatorID {
		at = nil
	}
	switch {
	case !own: // a client's authenticator
	case what.Credential == nil:
		if at != nil && !p.echo(ctx, at, what.CredentialID) {
			p.mirrorDeletion(ctx, at, what.CredentialID)
		}
	default:
		p.mirrorChange(ctx, at, what.Credential)
	}
}

// echo reports whether update or mirrorDeletion deleted a credential: Chrome sends
// events for those too, and update has added the credential again by then. If Chrome does
// not answer, echo returns true.
func (p *Authenticators) echo(ctx context.Context, at *authenticator, id []byte) bool {
	now, err := at.read(ctx)
	return err != nil || slices.ContainsFunc(now, func(c *webauthn.Credential) bool { return bytes.Equal(c.CredentialID, id) })
}

// mirrorDeletion records a deletion and applies it to the other pages.
func (p *Authenticators) mirrorDeletion(ctx context.Context, at *authenticator, id []byte) {
	p.mu.Lock()
	before := len(p.credentials)
	p.credentials = slices.DeleteFunc(p.credentials, func(c state.Passkey) bool { return bytes.Equal(c.ID, id) })
	fresh := len(p.credentials) < before
	p.mu.Unlock()
	if !fresh {
		return // this deletion was mirrored from another page
	}
	for _, d := range p.all() {
		if d.id != at.id && d.id != "" {
			d.page.Post(ctx, webauthn.RemoveCredential.Method, webauthn.RemoveCredentialParams{AuthenticatorID: d.id, CredentialID: id})
		}
	}
}

// mirrorChange records a credential that was created, used or renamed, and applies it to
// the other pages. One of these may have written a large blob that was not read yet: then all
// pages get it, instead of losing it.
func (p *Authenticators) mirrorChange(ctx context.Context, at *authenticator, is *webauthn.Credential) {
	from := webauthn.AuthenticatorID("")
	if at != nil {
		from = at.id
	}
	c := p.record(fromCDP(is), false)
	if blob := p.writtenBlob(ctx, from, c); blob != nil {
		c.LargeBlob, from = blob, ""
		c = p.record(c, true)
	}
	p.update(ctx, from, c)
}

// writtenBlob returns the large blob that an authenticator other than from has for a credential,
// if it is not the stored one; nil if there is none.
func (p *Authenticators) writtenBlob(ctx context.Context, from webauthn.AuthenticatorID, c state.Passkey) []byte {
	for _, d := range p.all() {
		if d.id == from || d.id == "" {
			continue
		}
		now, err := d.read(ctx)
		if err != nil {
			continue // the next repair replaces it
		}
		for _, is := range now {
			if bytes.Equal(is.CredentialID, c.ID) && len(is.LargeBlob) > 0 && !bytes.Equal(is.LargeBlob, c.LargeBlob) {
				return is.LargeBlob
			}
		}
	}
	return nil
}

// update writes a credential to all authenticators except one. It waits until they have
// all of it: Chrome adds the credential at once and its large blob later, and a reading
// in between shows an empty blob.
func (p *Authenticators) update(ctx context.Context, from webauthn.AuthenticatorID, c state.Passkey) {
	var updates sync.WaitGroup
	for _, d := range p.all() {
		if d.id == from || d.id == "" {
			continue
		}
		updates.Go(func() {
			// Chrome has no command to change a credential. The second command does not
			// wait for the first one's answer.
			d.page.Post(ctx, webauthn.RemoveCredential.Method, webauthn.RemoveCredentialParams{AuthenticatorID: d.id, CredentialID: c.ID})
			_ = p.addTo(ctx, d, c) // the next repair adds what is missing
		})
	}
	updates.Wait()
}

// record stores a credential and returns its stored form. An event lacks a blob that is
// being written; whole says that the blob was read.
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
	// Two pages that sign at the same time both count from the same number. The stored
	// counter never goes back.
	c.SignCount = max(c.SignCount, p.credentials[i].SignCount)
	p.credentials[i] = c
	return c
}

// find returns the index of a stored credential, or -1. The caller holds mu.
func (p *Authenticators) find(id []byte) int {
	return slices.IndexFunc(p.credentials, func(c state.Passkey) bool { return bytes.Equal(c.ID, id) })
}

// Read reads all authenticators: an event may not have arrived yet, and Chrome sends none
// for some changes.
func (p *Authenticators) Read(ctx context.Context) {
	p.chromeMu.Lock()
	defer p.chromeMu.Unlock()
	for _, d := range p.all() {
		now, err := d.read(ctx)
		if err != nil {
			continue // events have reported its changes
		}
		for _, c := range now {
			if is := fromCDP(c); p.newer(is) {
				p.update(ctx, d.id, p.record(is, true))
			}
		}
	}
}

// newer reports whether an authenticator's credential is newer than the stored one. One
// with a lower signature count lacks the last signature.
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
