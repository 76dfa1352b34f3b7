package passkey

import "context"

// RepairSoon has the authenticators repaired soon. It does not wait.
func (p *Authenticators) RepairSoon() {
	select {
	case p.repairs <- struct{}{}:
	default: // it is to be done already
	}
}

// PauseRepair has nothing repaired until the returned function is called, and waits
// for a repair that is under way: whoever attaches to many pages for a moment takes
// away what they are just being given.
func (p *Authenticators) PauseRepair() (resume func()) {
	p.asking.Lock()
	defer p.asking.Unlock()
	p.paused++
	return func() {
		p.asking.Lock()
		p.paused--
		p.asking.Unlock()
		p.RepairSoon()
	}
}

// ClientLeaving is called when a client leaves and its sessions still exist; the
// returned function, when they are gone.
func (p *Authenticators) ClientLeaving(ctx context.Context) (left func()) {
	p.leaving.RLock()
	// Its sessions take the authenticators of their pages with them.
	p.Read(ctx)
	return func() {
		defer p.leaving.RUnlock()
		p.repair(ctx)
	}
}

// ClientJoining is called before a client is served: it then finds no page without
// an authenticator that a client who leaves has just taken away.
func (p *Authenticators) ClientJoining(ctx context.Context) {
	p.leaving.Lock()
	defer p.leaving.Unlock()
	p.repair(ctx)
}

// repair gives pages their authenticator again where it has gone. Chrome takes it
// away with any session of the page that ends after the page has navigated, and
// with a client's own WebAuthn.disable.
func (p *Authenticators) repair(ctx context.Context) {
	p.asking.Lock()
	defer p.asking.Unlock()
	if p.paused > 0 || p.frozen() {
		return // it is done afterwards
	}
	for _, d := range p.all() {
		_, err := d.read(ctx)
		if err != nil && !refusal(err) {
			_, err = d.read(ctx) // it is busy, or went while it was asked
		}
		if err != nil && ctx.Err() == nil {
			p.install(ctx, d.page)
		}
	}
}
