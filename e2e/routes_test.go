package e2e

import (
	"slices"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// routes are the ways in which a CDP client once reached the machine's files. Those that
// take longest come first.
var routes = []struct {
	name  string
	shell bool // it works in the shell engine too
	take  func(*fileAttacker)
}{
	{"an extension's settings", false, bySettings},
	{"a breakpoint's condition", false, byCondition},
	{"a back list", false, byBackList},
	{"the PDF viewer in a PDF", false, byViewerFrame},
	{"the PDF viewer as a page", false, byViewerPage},
	{"a dropped page", true, byDrop},
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

// The samples have each route at least once, and each of the shell's protections.
var protections = []protection{
	{name: "no protection", tags: []string{noLandlock, noBlocklist, noTargetPolicy}, open: true, short: "user"},
	{name: "all protections", short: "user"},
	{name: "Landlock alone", tags: []string{noBlocklist, noTargetPolicy}, short: "user",
		sample: []string{"an extension's settings/chrome", "a dropped page/shell"}},
	{name: "block list alone", tags: []string{noLandlock, noTargetPolicy}, short: "user",
		noShell: "the headless shell does not know Chrome's block list: there Landlock and the target policy protect the files",
		sample:  []string{"a back list/chrome", "the PDF viewer as a page/chrome"}},
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
// all, by root and by an ordinary user. make test tries each with only one of them, and
// each protection alone with a sample of the routes; TestTable of browser/mux tests the
// target policy with every command. Every try goes for all files. All of them must arrive
// without a protection, and none with one.
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

// tryRoutes tries each route on one daemon, in each engine that it works in. Each try
// takes a place in limit.
func tryRoutes(t *testing.T, user string, w protection, limit chan struct{}) {
	// Only the binary without tags has the race detector, because other tests run it
	// too.
	o := daemon.Options{Tags: w.tags, Unraced: len(w.tags) > 0, NoSpares: true}
	if user != "root" {
		o = byOrdinaryUser(t, o)
	}
	d := daemon.Start(t, o)
	l := makeWantedFiles(t)
	if user != "root" {
		l = secretsOf(t, d)
	}
	var tries sync.WaitGroup
	for _, route := range routes {
		for _, engine := range []string{"chrome", "shell"} {
			name := route.name + "/" + engine
			if engine == "shell" && !route.shell || !storetest.Long() && len(w.sample) > 0 && !slices.Contains(w.sample, name) {
				continue
			}
			tries.Go(func() {
				limit <- struct{}{}
				defer func() { <-limit }()
				t.Run(name, func(t *testing.T) {
					open := w.open
					if engine == "shell" && w.noShell != "" {
						t.Log(w.noShell)
						open = true
					}
					for again := openTries - 1; ; again-- {
						x := newFileAttacker(t, d, l)
						x.engine, x.open = engine, open
						route.take(x)
						x.watch()
						if open && !x.all() && again > 0 {
							t.Log("the files did not arrive, so this route is tried again")
							x.leave()
							continue
						}
						x.count()
						x.leave()
						return
					}
				})
			})
		}
	}
	tries.Wait()
}
