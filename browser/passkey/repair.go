package passkey

import "context"

// RepairSoon requests a repair of the authenticators. It does not wait for it.
func (p *Authenticators) RepairSoon() {
	select {
	case p.repairs <- struct{}{}:
	default: // a repair is requested already
	}
}

// PauseRepair pauses repairs until the returned function is called, and waits for a
// repair in progress. A caller that briefly attaches to many pages would remove the
// authenticators that a repair is adding.
func (p *Authenticators) PauseRepair() (resume func()) {
	p.chromeMu.Lock()
	defer p.chromeMu.Unlock()
	p.paused++
	return func() {
		p.chromeMu.Lock()
		p.paused--
		p.chromeMu.Unlock()
		p.RepairSoon()
	}
}

// ClientLeaving is called when a client leaves and its sessions still exist. The returned
// function is called when they have ended.
func (p *Authenticators) ClientLeaving(ctx context.Context) (left func()) {
	p.leaving.RLock()
	// The end of its sessions removes the authenticators of their pages.
	p.Read(ctx)
	return func() {
		defer p.leaving.RUnlock()
		p.repair(ctx)
	}
}

// ClientJoining is called before a client is served. The client then finds no page whose
// authenticator was removed because another client has just left.
func (p *Authenticators) ClientJoining(ctx context.Context) {
	p.leaving.Lock()
	defer p.leaving.Unlock()
	p.repair(ctx)
}

// repair gives pages a new authenticator if theirs was removed. Chrome removes it when
// any session of the page ends after the page has navigated, and on a client's own
// WebAuthn.disable.
func (p *Authenticators) repair(ctx context.Context) {
	p.chromeMu.Lock()
	defer p.chromeMu.Unlock()
	if p.paused > 0 || p.frozen() {
		return // a repair follows later
	}
	for _, d := range p.all() {
		if _, err := d.read(ctx); err != nil && ctx.Err() == nil {
			p.install(ctx, d.page)
		}
	}
}
