package browser

import "github.com/stasisd/stasis/state"

// Options say how a browser is to be: what of an environment is restored, and
// what its pages are given from their first request on. The zero value is an
// environment without its tabs.
type Options struct {
	// Engine is EngineChrome or EngineShell; "" is EngineChrome.
	Engine string
	// RestoreTabs brings the saved tabs back.
	RestoreTabs bool
	// Overrides are what the pages are told; at a restore the saved ones apply
	// where these name none.
	Overrides state.Overrides
	// Extensions are those that the browser has, restored and new ones. Their
	// files lie in the run directory (see [ExtensionDir]) before it starts.
	Extensions []state.Extension
	// Passkeys gives pages a virtual authenticator, or none; nil: as the
	// environment had it.
	Passkeys *bool
	// Background: while it starts it takes no processor that anything else wants.
	Background bool
}
