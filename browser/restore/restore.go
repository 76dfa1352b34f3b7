// Package restore restores saved state in a running Chrome. It applies what the profile
// lacks, and holds the profile's tabs until their own state is in place.
//
// A restore calls [Environment.Hold] before Chrome opens the profile,
// [Environment.ApplyMissing] while all tabs are held, and then [Tabs.Release].
// [Tabs.Settle] follows the tabs until their pages have loaded. The shell engine restores
// no tabs from the profile; it calls [Environment.OpenTabs].
package restore

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/targetinit"
)

// blankURL is the address of an empty tab.
const blankURL = "about:blank"

// engineShell is the shell in [state.Chrome].
const engineShell = "shell"

// Driver is the daemon's CDP connection to one Chrome.
type Driver interface {
	capture.Conn
	// Post sends a command to a session and does not wait for the answer.
	Post(ctx context.Context, session target.SessionID, method string, params any) error
	// PostAnswered is Post that calls answer with the result, from another goroutine, if there
	// is one. answer must not block.
	PostAnswered(ctx context.Context, session target.SessionID, method string, params any, answer func(result []byte)) error
	// Events returns the events of all sessions, in order, until cancel.
	Events(methods ...string) (events <-chan mux.Event, cancel func())
}

// Browser is the part of the running Chrome that a restore needs.
type Browser interface {
	// AllowedURL reports whether a session may open an address. ForeignURL reports
	// whether a page of the session may not show it.
	AllowedURL(url string) bool
	ForeignURL(url string) bool
	// CloseTab closes a blank tab and returns once it is closed.
	CloseTab(ctx context.Context, id target.ID) error
	// StayAttached reports whether sessions of pages must not be detached.
	StayAttached() bool
	// Go runs f in a goroutine. The browser waits for it when it closes.
	Go(f func())
}

// Targets sets up each target for the session; see [targetinit.Initialiser].
type Targets interface {
	InitialiseHeld(ctx context.Context, id target.ID)
	WaitApplied(ctx context.Context, id target.ID) error
	WhenReady(id target.ID, f func(*targetinit.Target))
}

// Environment is a saved environment and the Chrome into which it is restored.
type Environment struct {
	Driver  Driver
	Browser Browser
	Targets Targets
	Life    context.Context // the browser's: its end cancels background work
	// Baseline is what the profile held. The restore records there what it applies.
	Baseline *baseline.Baseline
	// PendingTabs records the tabs whose page has not loaded yet.
	PendingTabs *PendingTabs
	UserDataDir string
	Shell       bool // the engine is the headless shell
	Now         func() time.Time
}
