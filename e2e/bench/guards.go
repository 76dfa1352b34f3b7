package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// guardsFile is the page that [bench.runGuards] and [bench.runStrangers] write.
const guardsFile = "guards.md"

// guardsTitle is the heading of the page's section that compares a daemon with and without
// guards.
const guardsTitle = "With and without guards"

// guardSide is one of the daemons that are compared, with a session of each engine that
// stays.
type guardSide struct {
	*host
	name string
	tabs map[string]*tab // by engine
}

// guardRun is one run. Its samples have one value for each side, in the order of sides.
type guardRun struct {
	*bench
	sides   []*guardSide // the last one has no guards
	order   *rand.Rand
	samples map[string][][]float64 // milliseconds, by what was timed
}

// guardMeasure is something that is timed on each side.
type guardMeasure struct {
	id, title string
	// uses says that it takes a spare, so that all spares must be there first.
	uses bool
	// take times it once on each side, and returns milliseconds by side.
	take func(context.Context) ([]float64, error)
	// each is in how many rounds it is taken once.
	each int
}

// runGuards compares daemons with and without guards; see [guardFlags]. Each round takes a
// fresh create, a warm restore, page loads and commands, of each engine and on each daemon, in
// a random order. The daemons take turns at once, so that other load on the machine affects
// all alike. Nothing is timed until all daemons have their spares. It writes a section of the
// page, or prints it if each guard is measured alone.
func (b *bench) runGuards(ctx context.Context) (err error) {
	g := &guardRun{bench: b, order: rand.New(rand.NewPCG(b.seed, 0)), samples: map[string][][]float64{}}
	defer g.close()
	for _, f := range b.guardFlags() {
		side, err := b.guardSide(ctx, f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		g.sides = append(g.sides, side)
	}
	measures := g.measures()
	for round := range b.rounds + 1 {
		if round%10 == 0 {
			progress("round %d of %d", round, b.rounds)
		}
		g.order.Shuffle(len(measures), func(i, j int) { measures[i], measures[j] = measures[j], measures[i] })
		for _, m := range measures {
			if round%m.each != 0 {
				continue
			}
			got, err := g.once(ctx, m)
			if err != nil {
				return fmt.Errorf("%s: %w", m.id, err)
			}
			if round > 0 { // the first one is a warm-up
				g.samples[m.id] = append(g.samples[m.id], got)
			}
		}
	}
	s := g.section()
	fmt.Print(s.markdown())
	if b.guardsAlone {
		return nil
	}
	path := filepath.Join(b.folder, guardsFile)
	return errors.Join(replaceSection(path, s), beginPage(path, guardsPreface))
}

const guardsPreface = `# What the protections among strangers cost

People who do not trust each other can use one daemon: [security.md](security.md) says what protects them. Two commands write
this page. ` + "`make bench-guards`" + ` compares a daemon with these protections and one without. ` + "`make strangers`" + ` has users work beside
a hostile one. Ratios differ less between machines than times do.
`

// beginPage adds the preface to a page that has sections only.
func beginPage(path, preface string) error {
	raw, err := os.ReadFile(path)
	if err != nil || strings.HasPrefix(string(raw), "# ") {
		return err
	}
	return os.WriteFile(path, []byte(preface+"\n"+string(raw)), 0o644)
}

func (g *guardRun) close() {
	for _, side := range g.sides {
		for _, t := range side.tabs {
			t.Close()
		}
	}
}

// measures returns what is timed, for the rounds and the rows of the page.
func (g *guardRun) measures() (all []guardMeasure) {
	for _, engine := range []string{chrome, shell} {
		restores := 1
		if engine == chrome && g.chromeRestores > 0 {
			restores = (g.rounds + g.chromeRestores - 1) / g.chromeRestores
		}
		fresh := scenario{name: "fresh", engine: engine, body: freshBody}
		warm := scenario{name: "warm", engine: engine, body: filesBody, path: "warm"}
		all = append(all,
			guardMeasure{"fresh/" + engine, "a fresh create to a page that answers CDP, " + engine, true, g.sessions(fresh), 1},
			guardMeasure{"warm/" + engine, "a warm restore to a page that answers CDP, " + engine, true, g.sessions(warm), restores},
			guardMeasure{"load/" + engine, "loading a page, " + engine, false, g.onTabs(engine, 1, func(ctx context.Context, side *guardSide, t *tab) error { return t.loadWhole(ctx, side.me()) }), 1},
			guardMeasure{"command/" + engine, "a command and its answer, " + engine, false, g.onTabs(engine, guardCommands, func(ctx context.Context, _ *guardSide, t *tab) error { return oneCommand(ctx, t) }), 1})
	}
	return all
}

// once takes a measure when all daemons have their spares, again if a restore took another
// path.
func (g *guardRun) once(ctx context.Context, m guardMeasure) (got []float64, err error) {
	for range tries {
		for _, side := range g.sides {
			if err := side.spared(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", side.name, err)
			}
		}
		if got, err = m.take(ctx); !errors.Is(err, errOtherPath) {
			break
		}
	}
	return got, err
}

// sessions returns a take that creates a session on each side, one after the other, and ends
// them afterwards. The daemons start the next spares only then.
func (g *guardRun) sessions(w scenario) func(context.Context) ([]float64, error) {
	return func(ctx context.Context) ([]float64, error) {
		got := make([]float64, len(g.sides))
		made := make([]*session, len(g.sides))
		var err error
		for _, i := range g.order.Perm(len(g.sides)) {
			fields := obj{"engine": w.engine}
			if err = w.body(ctx, g.sides[i].host, fields); err != nil {
				break
			}
			if made[i], got[i], err = g.sides[i].timedCreate(ctx, fields); err != nil {
				break
			}
		}
		ended := make(chan error)
		for _, s := range made {
			go func() {
				if s == nil {
					ended <- nil
					return
				}
				ended <- errors.Join(w.checkPath(s), discard(ctx, s))
			}()
		}
		for range made {
			err = errors.Join(err, <-ended)
		}
		return got, err
	}
}

// timedCreate times from a create until a script in the front page has answered.
func (h *host) timedCreate(ctx context.Context, fields obj) (s *session, ms float64, err error) {
	ms, err = timed(func() error {
		if s, err = h.create(ctx, fields); err != nil {
			s = nil
			return err
		}
		t, err := s.front(ctx)
		if err != nil {
			return err
		}
		defer t.Close()
		return oneCommand(ctx, t)
	})
	return s, ms, err
}

// guardCommands is the number of commands in a round, of which the median counts.
const guardCommands = 20

// onTabs returns a take that does something in the sessions that stay, on each side count
// times. The median of the times counts.
func (g *guardRun) onTabs(engine string, count int, do func(context.Context, *guardSide, *tab) error) func(context.Context) ([]float64, error) {
	return func(ctx context.Context) ([]float64, error) {
		times := make([][]float64, len(g.sides))
		for range count {
			for _, i := range g.order.Perm(len(g.sides)) {
				side := g.sides[i]
				ms, err := timed(func() error { return do(ctx, side, side.tabs[engine]) })
				if err != nil {
					return nil, err
				}
				times[i] = append(times[i], ms)
			}
		}
		got := make([]float64, len(g.sides))
		for i, of := range times {
			got[i] = spread(of).median
		}
		return got, nil
	}
}

// wholePage is a promise that the page has loaded.
const wholePage = `new Promise(done => document.readyState === "complete" ? done(true) : addEventListener("load", () => done(true)))`

// loadWhole loads an address, and waits until the page has loaded. It does not look again and
// again, so that the time has no steps.
func (t *tab) loadWhole(ctx context.Context, url string) error {
	var got struct{ ErrorText string }
	if err := t.Call(ctx, t.session, "Page.navigate", obj{"url": url}, &got); err != nil {
		return err
	}
	if got.ErrorText != "" {
		return fmt.Errorf("%s: %s", url, got.ErrorText)
	}
	var whole bool
	if err := t.evaluate(ctx, wholePage, &whole); err != nil {
		return err
	}
	var is bool
	if err := t.evaluate(ctx, "Boolean("+loggedIn+")", &is); err != nil || !is {
		return errors.Join(errLoggedOut, err)
	}
	return nil
}

// section has a row for each measure and each side with guards: both times, and the ratio of
// the medians with its interval.
func (g *guardRun) section() section {
	without := "the same binary with `--egress off`, `--session-limits off` and no quota"
	if g.against != "" {
		without = "an older binary without them"
	}
	s := section{
		title: guardsTitle,
		text: fmt.Sprintf("`make bench-guards` on %s, two daemons side by side: one with all guards, the other one %s. The rows have\n"+
			"the number of times on each, taken in turn, in a random order. Milliseconds: the median, with the middle half in brackets. The\n"+
			"ratio is that of the medians. Its interval holds 95 %% of %d samples of the same size, drawn again from these times\n"+
			"(the bootstrap). %s",
			time.Now().UTC().Format(time.DateOnly), without, bootstraps, machineLine(g.machine)),
		head: []string{"", "count", "with guards", "without", "×", "95 %", "at most"},
	}
	last := len(g.sides) - 1
	for _, m := range g.measures() {
		for i, side := range g.sides[:last] {
			pairs := make([][2]float64, len(g.samples[m.id]))
			for n, all := range g.samples[m.id] {
				pairs[n] = [2]float64{all[i], all[last]}
			}
			title := m.title
			if g.guardsAlone {
				title += ", " + side.name
			}
			s.rows = append(s.rows, ratioRow(title, pairs, rand.New(rand.NewPCG(g.seed, 1))))
		}
	}
	return s
}

// mostForGuards is how many times longer anything may take with guards.
const mostForGuards = 1.05

// ratioRow is the row of a measure, with both times of each pair.
func ratioRow(title string, pairs [][2]float64, random *rand.Rand) []string {
	return ratioRowWithin(title, pairs, mostForGuards, random)
}

// ratioRowWithin is ratioRow with another limit of the ratio.
func ratioRowWithin(title string, pairs [][2]float64, most float64, random *rand.Rand) []string {
	var with, without []float64
	for _, p := range pairs {
		with, without = append(with, p[0]), append(without, p[1])
	}
	ratio := spread(with).median / spread(without).median
	low, high := bootstrap(pairs, random)
	verdict := fmt.Sprintf("%.2f, met", most)
	if ratio > most {
		verdict = fmt.Sprintf("%.2f, **missed**", most)
	}
	exact := func(n float64) string { return fmt.Sprintf("%.3f", n) }
	return []string{title, fmt.Sprint(len(pairs)), spread(with).String(), spread(without).String(), exact(ratio), exact(low) + "–" + exact(high), verdict}
}

// machineLine describes the machine in a sentence.
func machineLine(machine [][]string) string {
	text := "Machine:"
	for i, row := range machine[1:] { // the first one is the date
		if i > 0 {
			text += ","
		}
		text += " " + row[0] + " " + row[1]
	}
	return text + "."
}
