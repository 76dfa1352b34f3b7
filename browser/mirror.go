package browser

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
func (p *passkeys) follow(ctx context.Context, events <-chan mux.Event) {
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
			p.read(ctx)
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
	p.doing.Lock() // a page that is being given its authenticator gets it whole
	defer p.doing.Unlock()
	p.mu.Lock()
	at := p.devices[e.SessionID]
	known := p.ours[what.AuthenticatorID]
	p.mu.Unlock()
	if at != nil && at.id != what.AuthenticatorID {
		at = nil
	}
	switch {
	case !known: // a client's own
	case what.Credential == nil:
		if at != nil && !p.echo(ctx, at, what.CredentialID) {
			p.dropped(ctx, at, what.CredentialID)
		}
	default:
		p.changed(ctx, at, what.Credential)
	}
}

// echo says whether a credential's deletion is one of those below: Chrome tells
// of them too, and the credential is there again by then. Where Chrome does not
// answer it is taken to be.
func (p *passkeys) echo(ctx context.Context, at *device, id []byte) bool {
	now, err := at.credentials(ctx)
	return err != nil || slices.ContainsFunc(now, func(c *webauthn.Credential) bool { return bytes.Equal(c.CredentialID, id) })
}

// dropped takes over a deletion.
func (p *passkeys) dropped(ctx context.Context, at *device, id []byte) {
	p.mu.Lock()
	before := len(p.held)
	p.held = slices.DeleteFunc(p.held, func(c state.Passkey) bool { return bytes.Equal(c.ID, id) })
	fresh := len(p.held) < before
	p.mu.Unlock()
	if !fresh {
		return // it was mirrored here
	}
	for _, d := range p.all() {
		if d.id != at.id && d.id != "" {
			d.page.post(ctx, webauthn.RemoveCredential.Method, webauthn.RemoveCredentialParams{AuthenticatorID: d.id, CredentialID: id})
		}
	}
}

// changed takes over a credential that was made, used or renamed.
func (p *passkeys) changed(ctx context.Context, at *device, told *webauthn.Credential) {
	from := webauthn.AuthenticatorID("")
	if at != nil {
		from = at.id
	}
	p.tell(ctx, from, p.take(fromCDP(told), false))
}

// tell gives a credential as it is now to all authenticators but one. It waits
// until they have it whole: Chrome adds the credential at once and its large
// blob later, and one that is read in between has an empty one.
func (p *passkeys) tell(ctx context.Context, from webauthn.AuthenticatorID, c state.Passkey) {
	var told sync.WaitGroup
	for _, d := range p.all() {
		if d.id == from || d.id == "" {
			continue
		}
		told.Go(func() {
			// Chrome has no command that changes one. The second does not wait for the first's answer.
			d.page.post(ctx, webauthn.RemoveCredential.Method, webauthn.RemoveCredentialParams{AuthenticatorID: d.id, CredentialID: c.ID})
			_ = p.give(ctx, d, c) // what it lacks it is given when it is next looked after
		})
	}
	told.Wait()
}

// take notes a credential and returns it as it is held now. An event lacks a
// blob that is being written; whole says that the blob was read.
func (p *passkeys) take(c state.Passkey, whole bool) state.Passkey {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.find(c.ID)
	if i < 0 {
		p.held = append(p.held, c)
		return c
	}
	if old := p.held[i]; !whole {
		c.LargeBlob = old.LargeBlob
	}
	// Two pages that sign at once both count from the same number: the counter
	// of the environment never goes back.
	c.SignCount = max(c.SignCount, p.held[i].SignCount)
	p.held[i] = c
	return c
}

// find is where a credential is held, or -1. The caller holds mu.
func (p *passkeys) find(id []byte) int {
	return slices.IndexFunc(p.held, func(c state.Passkey) bool { return bytes.Equal(c.ID, id) })
}

// read looks at every authenticator itself: an event may still be on its way,
// and Chrome has none for some things.
func (p *passkeys) read(ctx context.Context) {
	p.doing.Lock()
	defer p.doing.Unlock()
	for _, d := range p.all() {
		now, err := d.credentials(ctx)
		if err != nil {
			continue // the events have told the rest
		}
		for _, c := range now {
			if is := fromCDP(c); p.news(is) {
				p.tell(ctx, d.id, p.take(is, true))
			}
		}
	}
}

// news says whether what an authenticator holds is newer than what is held. One
// that has signed less has not been told of the last signature yet.
func (p *passkeys) news(is state.Passkey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.find(is.ID)
	if i < 0 {
		return true
	}
	was := p.held[i]
	return is.SignCount > was.SignCount || is.SignCount == was.SignCount && !bytes.Equal(is.LargeBlob, was.LargeBlob)
}
