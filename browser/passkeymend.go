package browser

import "context"

// stir has the authenticators looked after soon.
func (p *passkeys) stir() {
	select {
	case p.stirred <- struct{}{}:
	default: // it is to be done already
	}
}

// rest has nothing mended until the returned function is called, and waits for
// what is being mended: whoever comes and goes in many pages takes away what it
// is just being given.
func (p *passkeys) rest() (end func()) {
	p.doing.Lock()
	defer p.doing.Unlock()
	p.resting++
	return func() {
		p.doing.Lock()
		p.resting--
		p.doing.Unlock()
		p.stir()
	}
}

// part is called when a client leaves and its sessions are still there; the
// returned function, when they are gone.
func (p *passkeys) part(ctx context.Context) (parted func()) {
	p.parting.RLock()
	// Its sessions take the authenticators of their pages with them.
	p.read(ctx)
	return func() {
		defer p.parting.RUnlock()
		p.mend(ctx)
	}
}

// meet is called before a client comes in: it finds no page that one who leaves
// has just taken the authenticator from.
func (p *passkeys) meet(ctx context.Context) {
	p.parting.Lock()
	defer p.parting.Unlock()
	p.mend(ctx)
}

// mend gives pages their authenticator again where it has gone. Chrome takes it
// away with any session of the page that ends after the page has navigated, and
// with a client's own WebAuthn.disable.
func (p *passkeys) mend(ctx context.Context) {
	p.doing.Lock()
	defer p.doing.Unlock()
	if p.resting > 0 || p.frozen() {
		return // it is done afterwards
	}
	for _, d := range p.all() {
		_, err := d.credentials(ctx)
		if err != nil && !refusal(err) {
			_, err = d.credentials(ctx) // it is busy, or went while it was asked
		}
		if err != nil && ctx.Err() == nil {
			p.install(ctx, d.page)
		}
	}
}
