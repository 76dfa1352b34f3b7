package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/passkey"
	"github.com/stasisd/stasis/state"
)

// passkeys holds the passkeys of an environment. Pages can use them only through an
// authenticator. The zero value is an environment without passkeys.
type passkeys struct {
	authenticators *passkey.Authenticators // nil if pages have no authenticator
	saved          state.Passkeys          // the environment's passkeys if pages have no authenticator
}

// newPasskeys decides whether pages get an authenticator: as asked says, else as the
// environment had it.
func newPasskeys(saved state.Passkeys, asked *bool, m *mux.Mux, driver *mux.Driver, frozen func() bool) passkeys {
	if !saved.EnabledFor(asked) {
		return passkeys{saved: saved}
	}
	authenticators := passkey.New(driver, saved.Credentials, frozen)
	m.Hooks.OnDetach(authenticators.RepairSoon)
	return passkeys{authenticators: authenticators}
}

// held returns the passkeys as far as they are known without a request to Chrome. enabled
// reports whether pages have an authenticator.
func (p passkeys) held() (held state.Passkeys, enabled bool) {
	if p.authenticators == nil {
		return p.saved, false
	}
	return state.Passkeys{Enabled: true, Credentials: p.authenticators.Credentials()}, true
}

// lines returns the report lines of the saved passkeys.
func (p passkeys) lines(saved state.Passkeys) []state.Component {
	if p.authenticators == nil {
		return state.PasskeyLines(saved, false, nil)
	}
	return state.PasskeyLines(saved, true, p.authenticators.Refused())
}

// pause stops the repair of authenticators until resume is called; see
// [passkey.Authenticators.PauseRepair].
func (p passkeys) pause() (resume func()) {
	if p.authenticators == nil {
		return func() {}
	}
	return p.authenticators.PauseRepair()
}

// repair starts a repair of the pages' authenticators in the background.
func (p passkeys) repair() {
	if p.authenticators != nil {
		p.authenticators.RepairSoon()
	}
}

// read reads the passkeys from the pages' authenticators.
func (p passkeys) read(ctx context.Context) {
	if p.authenticators != nil {
		p.authenticators.Read(ctx)
	}
}

// wait returns when all work on authenticators has ended.
func (p passkeys) wait() {
	if p.authenticators != nil {
		p.authenticators.Wait()
	}
}
