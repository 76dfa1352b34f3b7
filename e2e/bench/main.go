// Bench measures what Stasis costs, beside what others cost, in one run, and
// writes docs/benchmarks.md and the picture beside it.
//
// What is timed is timed in rounds: each round does every measure once, in an
// order of its own, so that what the machine does besides falls on all alike.
// A ratio is the median of the rounds' own ratios. What grows, and what costs
// memory, is looked at once, after the rounds.
//
// It is a measurement and no test: a target that is missed is said, and is no
// failure. It ends with 1 only where something did not work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// settings are the command's flags.
type settings struct {
	binary, chrome, shell, clients string
	against                        string // an older binary, to be compared with; "": none
	ways                           string // of the part restore with against, by name; "": those that need no daemon more
	firstHost                      int    // the number of the first daemon, less one
	folder                         string // of the note and the picture
	only                           string // parts, by name; they are shown and not written
	rounds                         int
	seed                           uint64
	heavy                          bool
	soak                           time.Duration // soak instead of measuring
	relay                          bool          // be a bare relay of CDP, for the part cdp
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "stasis", "bin/stasis", "the daemon's binary")
	flag.StringVar(&s.against, "against", "", "an older binary: take the measures of Stasis itself with both, and show them")
	flag.StringVar(&s.ways, "ways", "", "with -against: measure only these ways of restore, by name, such as standby,shell-warm")
	flag.StringVar(&s.chrome, "chrome", "/usr/lib/chromium/chromium", "Chrome's binary")
	flag.StringVar(&s.shell, "shell", "/usr/lib/chromium/chromium-headless-shell", "the headless shell's binary")
	flag.StringVar(&s.clients, "clients", "e2e/clients", "folder of the client libraries")
	flag.StringVar(&s.folder, "out", "docs", "folder that the note and the picture are written to")
	flag.StringVar(&s.only, "only", "", "measure only these parts, and show them: "+strings.Join(partNames(), ","))
	flag.IntVar(&s.rounds, "rounds", 12, "how often each measure is taken")
	flag.Uint64Var(&s.seed, "seed", 1, "orders the rounds")
	flag.BoolVar(&s.heavy, "heavy", false, "also measure an environment of 500 MB")
	flag.DurationVar(&s.soak, "soak", 0, "instead let sessions live and die for so long, and look at what is left")
	flag.BoolVar(&s.relay, "relay", false, "be the relay that the multiplexer is compared with, on inherited descriptors")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) (err error) {
	if s.relay {
		return relay()
	}
	parts, err := chosen(s.only)
	if err != nil {
		return err
	}
	if s.against != "" {
		return compared(ctx, s, parts)
	}
	b, err := newBench(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if s.soak > 0 {
		return b.soaked(ctx, s.soak)
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

// part is one of the things that are measured: by timing in the rounds, by a
// look after them, or both.
type part struct {
	name     string
	measures func(context.Context, *bench) ([]measure, error)
	survey   func(context.Context, *bench) error
}

// parts are all there are, in the order of the note.
func parts() []part {
	return []part{
		{name: "restore", measures: restoreMeasures},
		{name: "save", measures: saveMeasures},
		{name: "cycle", measures: cycleMeasures},
		{name: "landlock", measures: landlockMeasures},
		{name: "cdp", survey: cdpSurvey},
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

// chosen are the parts that a list names, all for an empty one.
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
			return nil, fmt.Errorf("-only: %q is none of %s", name, strings.Join(partNames(), ", "))
		}
	}
	return picked, nil
}

// progress tells whoever waits where it is.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
