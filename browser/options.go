package browser

import (
	"context"
	"net/netip"
	"slices"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/state"
)

// Options says what a browser restores of an environment, and which settings its pages
// have from their first request on. The zero value restores an environment without its
// tabs.
type Options struct {
	// Owner is any name of whose session it is: the processors are divided among owners; "":
	// nobody's, as a spare before its session.
	Owner string
	// Engine is EngineChrome or EngineShell; "" is EngineChrome.
	Engine string
	// RestoreTabs restores the saved tabs.
	RestoreTabs bool
	// Overrides are the settings for pages. In a restore the saved overrides apply where
	// these set none.
	Overrides state.Overrides
	// Extensions are the browser's extensions, restored and new ones. Their files must be
	// in the run directory (see [ExtensionDir]) before it starts.
	Extensions []state.Extension
	// Passkeys says whether pages get a virtual authenticator; nil: as saved in the
	// environment.
	Passkeys *bool
	// Egress narrows what the session may connect to.
	Egress Egress
	// Limits narrow what the session may use.
	Limits Limits
	// Gates: full Chrome starts with gates, if it can, so that an environment can be loaded
	// quickly. While it is loaded, its files are in two places, so they must be a copy.
	Gates bool
	// Tail is the part of the environment that is still being unpacked; nil: it is complete.
	Tail Tail
	// Background: Chrome starts with a reduced CPU priority; see
	// [launch.Process.Background].
	Background bool
}

// Egress is what a session may connect to, within what the daemon's policy allows. The
// session's proxy is added by the browser; see [egress.Limits].
type Egress struct {
	Lists   []egress.List
	Private []netip.Prefix
}

// Equal reports whether both allow the same. The order of lists and of their entries does
// not matter.
func (e Egress) Equal(other Egress) bool {
	return slices.Equal(sortedNetworks(e.Private), sortedNetworks(other.Private)) && containsLists(e.Lists, other.Lists) && containsLists(other.Lists, e.Lists)
}

// containsLists reports whether each of some lists has an equal one in all.
func containsLists(all, some []egress.List) bool {
	return !slices.ContainsFunc(some, func(l egress.List) bool {
		return !slices.ContainsFunc(all, func(other egress.List) bool {
			return slices.Equal(sortedNetworks(l.Allow), sortedNetworks(other.Allow)) && slices.Equal(sortedNetworks(l.Deny), sortedNetworks(other.Deny)) &&
				slices.Equal(sortedHosts(l.AllowHosts), sortedHosts(other.AllowHosts)) && slices.Equal(sortedHosts(l.DenyHosts), sortedHosts(other.DenyHosts))
		})
	})
}

func sortedNetworks(networks []netip.Prefix) []netip.Prefix {
	return slices.Compact(slices.SortedFunc(slices.Values(networks), netip.Prefix.Compare))
}

func sortedHosts(hosts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(hosts)))
}

// Tail is the part of an environment that is unpacked to the folder [Unpacking] of the user
// data directory while its Chrome runs already.
type Tail interface {
	// Wait starts the unpacking and returns when it has ended. If ctx ends, the unpacking is
	// cancelled. Wait may be called again.
	Wait(ctx context.Context) error
	// Ended is called when the tail is in place, or with the error because of which it never
	// will be and Chrome is ended.
	Ended(err error)
}

// Unpacking is the folder of the user data directory where a [Tail] is unpacked.
const Unpacking = profile.Unpacking
