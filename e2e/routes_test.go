package e2e

import (
	"slices"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// route is a way in which a CDP client once reached the machine's files.
type route struct {
	name      string
	shell     bool // it works in the shell engine too
	extension bool // its session has an extension
	restored  bool // its session is restored from an imported profile
	take      func(*fileAttacker)
}

// routes are those that take longest first. A dropped page is last, because it stops new
// targets of a shared session.
var routes = []route{
	{name: "an extension's settings", extension: true, take: bySettings},
	{name: "a breakpoint's condition", extension: true, take: byCondition},
	{name: "a back list", restored: true, take: byBackList},
	{name: "the PDF viewer in a PDF", take: byViewerFrame},
	{name: "the PDF viewer as a page", take: byViewerPage},
	{name: "a dropped page", shell: true, take: byDrop},
}

// protection is a configuration of the binary: a set of build tags that leave one protection in it, or none.
type protection struct {
	name    string
	tags    []string
	open    bool     // no protection is on, so the bytes must arrive
	noShell string   // why the headless shell does not have this protection, so that the bytes arrive there
	short   string   // the user of the daemon in make test: "root" or "user"; make test-long tries both
	sample  []string // the tries of make test, as route/engine; all if empty
}

// The samples of the single protections have each of the shell's protections, and each route
// at least once but the longest, an extension's settings. That one is tried with all
// protections and without one.
var protections = []protection{
	{name: "no protection", tags: []string{noLandlock, noBlocklist, noTargetPolicy}, open: true, short: "user",
		sample: []string{"an extension's settings/chrome", "the PDF viewer in a PDF/chrome", "the PDF viewer as a page/chrome", "a dropped page/shell"}},
	{name: "all protections", short: "user"},
	{name: "Landlock alone", tags: []string{noBlocklist, noTargetPolicy}, short: "user",
		sample: []string{"the PDF viewer as a page/chrome", "a dropped page/shell"}},
	{name: "block list alone", tags: []string{noLandlock, noTargetPolicy}, short: "user",
		noShell: "the headless shell does not know Chrome's block list: there Landlock and the target policy protect the files",
		sample:  []string{"a back list/chrome"}},
	{name: "target policy alone", tags: []string{noLandlock, noBlocklist}, short: "root",
		sample: []string{"a breakpoint's condition/chrome", "the PDF viewer in a PDF/chrome", "a dropped page/shell"}},
}

const (
	noLandlock     = "stasis_no_landlock"
	noBlocklist    = "stasis_no_blocklist"
	noTargetPolicy = "stasis_no_target_policy"
)

// triesAtOnce is how many tries run at once. Most of a try is waiting.
const triesAtOnce = 6

// openTries is how often a route is tried without a protection until the files arrive.
// On a slow machine a try may fail, which says nothing about the protections.
const openTries = 3

// TestRoutes tries each route without a protection, with each protection alone and with
// all, by root and by an ordinary user. make test tries each with only one of them, and a
// sample of the routes unless all protections are on; TestTable of browser/mux tests the
// target policy with every command. There, routes of one engine share a session, except
// the one that needs an imported profile; in make test-long each try has its own. Every
// try goes for all files. All of them must arrive without a protection, and none with one.
func TestRoutes(t *testing.T) {
	t.Parallel()
	limit := make(chan struct{}, triesAtOnce)
	var daemons sync.WaitGroup
	for _, user := range []string{"root", "user"} {
		for _, w := range protections {
			if w.short == user || storetest.Long() {
				daemons.Go(func() {
					t.Run(user+"/"+w.name, func(t *testing.T) { tryRoutes(t, user, w, limit) })
				})
			}
		}
	}
	daemons.Wait()
}

// tryRoutes tries each route on one daemon, in each engine that it works in. Each session
// takes a place in limit.
func tryRoutes(t *testing.T, user string, w protection, limit chan struct{}) {
	d, l := unprotected(t, user, w)
	var tries sync.WaitGroup
	for _, engine := range []string{"chrome", "shell"} {
		open := w.open
		if engine == "shell" && w.noShell != "" {
			t.Log(w.noShell)
			open = true
		}
		for _, together := range sessionsOf(w, engine) {
			tries.Go(func() {
				limit <- struct{}{}
				defer func() { <-limit }()
				x := newFileAttacker(t, d, l)
				x.engine, x.open = engine, open
				tryTogether(t, x, together)
			})
		}
	}
	tries.Wait()
}

// unprotected starts a daemon with only some protections. It returns the wanted files too.
func unprotected(t *testing.T, user string, w protection) (*daemon.Daemon, []wantedFile) {
	t.Helper()
	// Only the binary without tags has the race detector, because other tests run it
	// too.
	o := daemon.Options{Tags: w.tags, Unraced: len(w.tags) > 0, NoSpares: true}
	if !storetest.Long() && slices.Contains(o.Tags, noLandlock) {
		// This flag needs no further binary. With the tag, the daemon also starts Chrome
		// as it does with Landlock.
		o.Tags = slices.DeleteFunc(slices.Clone(o.Tags), func(tag string) bool { return tag == noLandlock })
		o.Args = []string{"--no-landlock"}
	}
	if user != "root" {
		o = byOrdinaryUser(t, o)
	}
	d := daemon.Start(t, o)
	if user != "root" {
		return d, secretsOf(t, d)
	}
	return d, makeWantedFiles(t)
}

// sessionsOf returns the routes to try with an engine, those of one session together. A
// route with an extension or a restored environment has a session for itself, because it
// changes the browser for the routes after it.
func sessionsOf(w protection, engine string) (sessions [][]route) {
	var shared []route
	for _, r := range routes {
		switch {
		case engine == "shell" && !r.shell:
		case !storetest.Long() && len(w.sample) > 0 && !slices.Contains(w.sample, r.name+"/"+engine):
		case storetest.Long() || r.restored || r.extension:
			sessions = append(sessions, []route{r})
		default:
			shared = append(shared, r)
		}
	}
	if len(shared) > 0 {
		sessions = append(sessions, shared)
	}
	return sessions
}

// tryTogether tries routes one after the other, more than one in a shared session.
// Without a protection it tries a route again, with a new session, if the files did not
// arrive.
func tryTogether(t *testing.T, x *fileAttacker, together []route) {
	again := openTries - 1
	for i := 0; i < len(together); {
		if len(together) > 1 && !x.shared {
			x.t = t
			x.share(together[i:])
		}
		ended := false
		passed := t.Run(together[i].name+"/"+x.engine, func(t *testing.T) {
			x.t = t
			together[i].take(x)
			x.watch()
			if x.open && !x.all() && again > 0 {
				t.Log("the files did not arrive, so this route is tried again")
				again--
				x.shared, ended = false, true
				x.leave()
				return
			}
			x.count()
			again = openTries - 1
			i++
			ended = true
			if !x.shared || i == len(together) {
				x.leave()
			} else {
				x.clear()
			}
		})
		switch {
		case !ended && !passed: // the session may be unusable
			return
		case !ended: // the flag -run leaves this route out
			i++
		}
	}
}
