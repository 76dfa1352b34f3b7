package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// guardsFile is the page that [bench.runGuards] and [bench.runStrangers] write.
const guardsFile = "guards.md"

// guardsTitle is the heading of the page's section that compares a daemon with and without
// guards.
const guardsTitle = "With and without guards"

// guardedFlags are the flags of a daemon that strangers use. Its quotas are large, so that
// each is counted but none is reached.
func guardedFlags() []string {
	return []string{"--egress", "required", "--session-limits", "required",
		"--default-quota", "sessions=1000,parked=1000,snapshots=100000,bytes=1000000000000,sockets=10000,requests_per_second=100000"}
}

// unguardedFlags turn off the guards of the same binary that can be turned off. The audit log
// and the processes that read uploads have no flag.
func unguardedFlags() []string { return []string{"--egress", "off", "--session-limits", "off"} }

// guardSide is one of the two daemons that are compared, with a session of each engine that
// stays.
type guardSide struct {
	*host
	tabs map[string]*tab // by engine
}

// runGuards compares two daemons, with all guards and without them: s.against is the binary
// of the second one, if it is given, otherwise it is the same binary with its guards turned
// off. Each round takes, for each engine and each daemon, a fresh create, a warm restore, a
// page load and a command. It writes a section of the page.
func (b *bench) runGuards(ctx context.Context) (err error) {
	var sides [2]*guardSide
	for i := range sides {
		side, err := b.guardSide(ctx, i == 0)
		if err != nil {
			return err
		}
		sides[i] = side
	}
	defer func() {
		for _, side := range sides {
			for _, t := range side.tabs {
				t.Close()
			}
		}
	}()
	var measures []measure
	for i, side := range sides {
		for _, engine := range []string{chrome, shell} {
			id := func(what string) string { return fmt.Sprintf("%d %s/%s", i, what, engine) }
			on := func(*bench) *host { return side.host }
			for name, body := range map[string]func(context.Context, *host, obj) error{"fresh": freshBody, "warm": filesBody} {
				w := scenario{name: name, engine: engine, on: on, body: body, path: map[string]string{"warm": "warm"}[name]}
				measures = append(measures, measure{id(name), retryOtherPath(func(ctx context.Context) (map[string]float64, error) { return b.toCDP(ctx, w) })})
			}
			measures = append(measures,
				measure{id("load"), func(ctx context.Context) (map[string]float64, error) {
					return one(func() error { return side.tabs[engine].visit(ctx, side.me(), loggedIn) })
				}},
				measure{id("command"), func(ctx context.Context) (map[string]float64, error) { return side.command(ctx, engine) }})
		}
	}
	slices.SortFunc(measures, func(x, y measure) int { return strings.Compare(x.id, y.id) }) // a map has no order
	all, err := b.inRounds(ctx, measures)
	if err != nil {
		return err
	}
	s := b.guardsSection(all)
	fmt.Print(s.markdown())
	return replaceSection(filepath.Join(b.folder, guardsFile), s)
}

// guardSide starts one of the two daemons, with a spare of each engine.
func (b *bench) guardSide(ctx context.Context, guarded bool) (*guardSide, error) {
	flags, binary := guardedFlags(), b.binary
	switch {
	case !guarded && b.against != "":
		flags, b.binary = nil, b.against
	case !guarded:
		flags = unguardedFlags()
	}
	h, err := b.host(ctx, []string{"STASIS_SPARES=1", "STASIS_SHELL_SPARES=1"}, flags...)
	b.binary = binary
	b.others = append(b.others, h)
	if err != nil {
		return nil, err
	}
	side := &guardSide{host: h, tabs: map[string]*tab{}}
	for _, engine := range []string{chrome, shell} {
		s, err := h.atMe(ctx, obj{"engine": engine})
		if err != nil {
			return nil, err
		}
		if side.tabs[engine], err = s.front(ctx); err != nil {
			return nil, err
		}
	}
	h.spares = 4 // two sessions that stay, and a spare of each engine
	return side, h.ready(ctx, 0)
}

// guardCommands is the number of commands in a round, of which the median counts.
const guardCommands = 20

// command times a command through the multiplexer, in milliseconds.
func (g *guardSide) command(ctx context.Context, engine string) (map[string]float64, error) {
	each := make([]float64, guardCommands)
	for i := range each {
		var err error
		if each[i], err = timed(func() error { return oneCommand(ctx, g.tabs[engine]) }); err != nil {
			return nil, err
		}
	}
	return map[string]float64{"": spread(each).median}, nil
}

// one times something as a measure without steps.
func one(do func() error) (map[string]float64, error) {
	ms, err := timed(do)
	return map[string]float64{"": ms}, err
}

// guardsSection has a row for each measure: both times, and the ratio with its interval.
func (b *bench) guardsSection(all times) section {
	without := "the same binary with `--egress off`, `--session-limits off` and no quota"
	if b.against != "" {
		without = "an older binary without them"
	}
	s := section{
		title: guardsTitle,
		text: fmt.Sprintf("`make bench-guards` on %s: %d rounds on two daemons, one with all guards, the other one %s. Each round takes everything\n"+
			"in a random order. Milliseconds, with the middle half in brackets. The ratio is the median of the rounds' ratios, with the\n"+
			"interval that holds the median of many such rounds with a probability of 95 %%. %s",
			time.Now().UTC().Format(time.DateOnly), b.rounds, without, machineLine(b.machine)),
		head: []string{"", "with guards", "without", "×", "95 %"},
	}
	titles := []struct{ id, title string }{
		{"fresh", "a fresh create to a page that answers CDP"}, {"warm", "a warm restore to a page that answers CDP"},
		{"load", "loading a page"}, {"command", "a command and its answer"},
	}
	for _, engine := range []string{chrome, shell} {
		for _, row := range titles {
			with, without := all["0 "+row.id+"/"+engine], all["1 "+row.id+"/"+engine]
			low, high := medianInterval(dividedBy(with, without))
			s.rows = append(s.rows, []string{row.title + ", " + engine, spread(with).String(), spread(without).String(),
				number(ratios(with, without).median), number(low) + "–" + number(high)})
		}
	}
	return s
}

// machineLine describes the machine in a sentence.
func machineLine(machine [][]string) string {
	var all []string
	for _, row := range machine[1:] { // the first one is the date
		all = append(all, row[0]+" "+row[1])
	}
	return "Machine: " + strings.Join(all, ", ") + "."
}
