package e2e

import (
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// TestOneDaemon runs tests that need no separate daemon on one daemon, two at a time.
// Each has its own sessions and users.
func TestOneDaemon(t *testing.T) {
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	// A group, so that the daemon runs until the parallel tests have ended.
	t.Run("all", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *daemon.Daemon){
			"a client closes":        closingClientLeavesTheSession,
			"two clients":            twoClientsAtOnce,
			"discovery":              discovery,
			"connect":                connect,
			"the end closes sockets": endClosesTheSockets,
			"idle":                   idleSessionIsRescued,
			"discard":                timeoutMayDiscard,
			"lifetime":               lifetime,
			"states":                 states,
			"on live":                onLive,
			"on live at once":        onLiveAtOnce,
			"without tabs":           restoreWithoutTabs,
			"a stranger":             aStrangerIsNotLoggedIn,
			"a login check":          loginCheck,
			"overrides":              overridesComeBack,
			"a download":             downloadArrives,
			"an upload":              uploadedFileIsGiven,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, d)
			})
		}
	})
}
