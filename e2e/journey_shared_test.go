package e2e

import (
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// TestOneDaemon runs tests that need no separate daemon on one daemon, two at a time.
// Each has its own sessions and users. In make test, those whose subject is not the
// browser run on another daemon, whose engine is the shell.
func TestOneDaemon(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	shell := d
	if !storetest.Long() {
		shell = daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", browser.EngineShell}})
	}
	// A group, so that the daemons run until the parallel tests have ended.
	t.Run("all", func(t *testing.T) {
		for name, test := range map[string]struct {
			d   *daemon.Daemon
			run func(*testing.T, *daemon.Daemon)
		}{
			"a client closes":        {shell, closingClientLeavesTheSession},
			"two clients":            {shell, twoClientsAtOnce},
			"discovery":              {shell, discovery},
			"connect":                {shell, connect},
			"the end closes sockets": {shell, endClosesTheSockets},
			"idle":                   {shell, idleSessionIsRescued},
			"discard":                {shell, timeoutMayDiscard},
			"lifetime":               {shell, lifetime},
			"states":                 {shell, states},
			"the session API":        {shell, sessionAPI},
			"sessions of agents":     {shell, agentSessions},
			"on live":                {shell, onLive},
			"on live at once":        {shell, onLiveAtOnce},
			"without tabs":           {shell, restoreWithoutTabs},
			"a stranger":             {shell, aStrangerIsNotLoggedIn},
			"a login check":          {shell, loginCheck},
			"overrides":              {d, overridesComeBack},
			"a download":             {d, downloadArrives},
			"a download, shell":      {shell, downloadArrives},
			"an upload":              {shell, uploadedFileIsGiven},
			"attach":                 {shell, attach},
			"the Selenium page":      {shell, seleniumPage},
			"the page of logins":     {shell, storageStatePage},
		} {
			if name == "a download, shell" && !storetest.Long() {
				continue // "an upload" has the shell's files
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test.run(t, test.d)
			})
		}
	})
}
