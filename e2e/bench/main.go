// Bench measures what Stasis costs beside other tools, in one run. It writes
// docs/benchmarks.md and the picture next to it.
//
// Timed measures are taken in rounds. Each round takes every measure once, in a random
// order, so that other load on the machine affects all of them alike. A ratio is the
// median of the rounds' ratios. Growth and memory are measured once, after the rounds.
//
// Bench is a measurement and not a test. The page shows missed targets, but they are no
// failure. Bench exits with 1 only if something did not work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// settings are the command's flags.
type settings struct {
	binary, chrome, shell, clients string
	against                        string // an older binary to compare with; "" for none
	scenarios                      string // names of restore paths for the part restore with against; "" for those that need no further daemon
	firstHost                      int    // number of the first daemon, minus one
	folder                         string // of the page and the picture
	only                           string // names of parts; they are printed and not written
	rounds                         int
	seed                           uint64
	heavy                          bool
	soak                           time.Duration // duration of a soak, which replaces the measurement; 0 for none
	inARow                         int           // restores in a row after a soak
	guards                         bool          // compare a daemon with and without guards, which replaces the measurement
	guardsAlone                    bool          // with guards: also a daemon for each guard alone
	chromeRestores                 int           // with guards: at most so many restores of full Chrome; 0 for one in each round
	strangers                      time.Duration // duration of a run with a hostile user, which replaces the measurement; 0 for none
	hop                            bool          // compare calls through two nodes, which replaces the measurement
	base                           string        // a commit whose starts are compared, which replaces the measurement; "": none
	relay                          bool          // run as the bare CDP relay of the part cdp
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "stasis", "bin/stasis", "path of the stasis binary")
	flag.StringVar(&s.against, "against", "", "path of an older stasis binary: take Stasis's own measures with both, and print them")
	flag.StringVar(&s.scenarios, "ways", "", "with -against: measure only these restore paths, such as standby,shell-warm")
	flag.StringVar(&s.chrome, "chrome", "/usr/lib/chromium/chromium", "path of the Chrome binary")
	flag.StringVar(&s.shell, "shell", "/usr/lib/chromium/chromium-headless-shell", "path of the headless shell binary")
	flag.StringVar(&s.clients, "clients", "e2e/clients", "folder with the client libraries and their scripts")
	flag.StringVar(&s.folder, "out", "docs", "folder to write the page and the picture to")
	flag.StringVar(&s.only, "only", "", "measure only these parts, and print them; of "+strings.Join(partNames(), ","))
	flag.IntVar(&s.rounds, "rounds", 12, "how many rounds; each takes every measure once")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of the random order in each round")
	flag.BoolVar(&s.heavy, "heavy", false, "also measure an environment of 500 MB")
	flag.DurationVar(&s.soak, "soak", 0, "instead create and end sessions for this long while Chromes are killed, and check for leaks")
	flag.IntVar(&s.inARow, "restores", 2000, "with -soak: then restore in a row so many times")
	flag.BoolVar(&s.guards, "guards", false, "instead compare a daemon with all guards and one without; with -against an older binary is the one without")
	flag.BoolVar(&s.guardsAlone, "alone", false, "with -guards: also measure each guard alone, and print the table")
	flag.IntVar(&s.chromeRestores, "chrome-restores", 0, "with -guards: restore full Chrome at most so many times, evenly over the rounds; 0 for once in each round")
	flag.DurationVar(&s.strangers, "strangers", 0, "instead have users work for this long, beside a hostile one for half of it")
	flag.BoolVar(&s.hop, "hop", false, "instead compare commands through the node of a session and through another node")
	flag.StringVar(&s.base, "base", "", "instead compare the start of a daemon with that of this commit, which is built first")
	flag.BoolVar(&s.relay, "relay", false, "run as the bare relay that the multiplexer is compared with (internal: needs inherited descriptors)")
	flag.Parse()
	rig.Main("bench", func(ctx context.Context) error { return run(ctx, s) })
}

func run(ctx context.Context, s settings) (err error) {
	if s.relay {
		return relay()
	}
	parts, err := chosen(s.only)
	if err != nil {
		return err
	}
	if s.against != "" && !s.guards {
		return compared(ctx, s, parts)
	}
	b, err := newBench(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	switch {
	case s.soak > 0:
		return b.runSoak(ctx, s.soak, s.inARow)
	case s.guards:
		return b.runGuards(ctx)
	case s.hop:
		return b.runHop(ctx)
	case s.base != "":
		return b.runStarts(ctx)
	case s.strangers > 0:
		return b.runStrangers(ctx, s.strangers)
	}
	var measures []measure
	for _, p := range parts {
		if p.measures == nil {
			continue
		}
		of, err := p.measures(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		measures = append(measures, of...)
	}
	if b.times, err = b.inRounds(ctx, measures); err != nil {
		return err
	}
	for _, p := range parts {
		if p.survey == nil {
			continue
		}
		progress("%s", p.name)
		if err := p.survey(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return b.report()
}

// part is a part of the measurement: measures for the rounds, a survey after them, or
// both.
type part struct {
	name     string
	measures func(context.Context, *bench) ([]measure, error)
	survey   func(context.Context, *bench) error
}

// parts returns all parts, in the order of the page.
func parts() []part {
	return []part{
		{name: "restore", measures: restoreMeasures},
		{name: "save", measures: saveMeasures},
		{name: "cycle", measures: cycleMeasures},
		{name: "landlock", measures: landlockMeasures},
		{name: "cdp", survey: cdpSurvey},
		{name: "view", survey: viewSurvey},
		{name: "console", survey: consoleSurvey},
		{name: "size", survey: sizeSurvey},
		{name: "autosave", survey: autosaveSurvey},
		{name: "interval", survey: intervalSurvey},
		{name: "memory", survey: memorySurvey},
		{name: "growth", survey: growthSurvey},
		{name: "rate", survey: rateSurvey},
		{name: "restart", survey: restartSurvey},
	}
}

func partNames() (names []string) {
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// chosen returns the parts that a comma-separated list names; all for an empty list.
func chosen(only string) ([]part, error) {
	if only == "" {
		return parts(), nil
	}
	var picked []part
	for name := range strings.SplitSeq(only, ",") {
		at := len(picked)
		for _, p := range parts() {
			if p.name == name {
				picked = append(picked, p)
			}
		}
		if len(picked) == at {
			return nil, fmt.Errorf("-only: unknown part %q; allowed are %s", name, strings.Join(partNames(), ", "))
		}
	}
	return picked, nil
}

// progress prints to standard error how far the run is.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
