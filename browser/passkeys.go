package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/passkey"
	"github.com/stasisd/stasis/state"
)

// passkeys are those of an environment. Pages have them only where they have an
// authenticator. The zero value is an environment without.
type passkeys struct {
	given *passkey.Authenticators // nil where pages have no authenticator
	kept  state.Passkeys          // of the environment, where pages have none
}

// givePasskeys decides whether pages are to have an authenticator: as the
// options ask, else as the environment had it.
func givePasskeys(saved state.Passkeys, asked *bool, m *mux.Mux, driver *mux.Driver, frozen func() bool) passkeys {
	if !saved.Given(asked) {
		return passkeys{kept: saved}
	}
	given := passkey.New(driver, saved.Credentials, frozen)
	m.Hooks.OnDetach(given.RepairSoon)
	return passkeys{given: given}
}

// held are the passkeys as far as is known without asking Chrome, and whether pages
// have them.
func (p passkeys) held() (held state.Passkeys, given bool) {
	if p.given == nil {
		return p.kept, false
	}
	return state.Passkeys{Enabled: true, Credentials: p.given.Credentials()}, true
}

// lines report what became of the saved passkeys.
func (p passkeys) lines(saved state.Passkeys) []state.Component {
	if p.given == nil {
		return state.PasskeyLines(saved, false, nil)
	}
	return state.PasskeyLines(saved, true, p.given.Refused())
}

// pause keeps authenticators from being repaired until resume is called; see
// [passkey.Authenticators.PauseRepair].
func (p passkeys) pause() (resume func()) {
	if p.given == nil {
		return func() {}
	}
	return p.given.PauseRepair()
}

// repair repairs the authenticators of pages soon.
func (p passkeys) repair() {
	if p.given != nil {
		p.given.RepairSoon()
	}
}

// read reads the passkeys that pages have.
func (p passkeys) read(ctx context.Context) {
	if p.given != nil {
		p.given.Read(ctx)
	}
}

// wait returns when the work on authenticators has ended.
func (p passkeys) wait() {
	if p.given != nil {
		p.given.Wait()
	}
}
