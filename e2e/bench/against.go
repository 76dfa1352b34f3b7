package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// otherHosts is the number of the older binary's first host, so that no two daemons use
// the same users.
const otherHosts = 50

// compared takes Stasis's own measures with two binaries, both in each round. It prints
// the old times, the new times and how they compare.
func compared(ctx context.Context, s settings, parts []part) (err error) {
	binaries := []string{s.against, s.binary}
	benches := make([]*bench, len(binaries))
	var measures []measure
	for i, binary := range binaries {
		of := s
		of.binary, of.firstHost = binary, i*otherHosts
		b, err := newBench(ctx, of)
		if b != nil {
			defer func() { err = errors.Join(err, b.close()) }()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", binary, err)
		}
		benches[i] = b
		own, err := b.ownMeasures(ctx, parts)
		if err != nil {
			return fmt.Errorf("%s: %w", binary, err)
		}
		for _, m := range own {
			measures = append(measures, measure{fmt.Sprintf("%d %s", i, m.id), m.take})
		}
	}
	all, err := benches[1].inRounds(ctx, measures)
	if err != nil {
		return err
	}
	fmt.Print(againstSection(s, all).markdown())
	return nil
}

// ownMeasures returns the measures of Stasis itself in some parts: restore paths, saves
// and whole sessions. Without -ways it leaves out standbys and spares of the shell. Each
// of them needs one more daemon for each binary, and with all of them the machine is
// never idle.
func (b *bench) ownMeasures(ctx context.Context, parts []part) (own []measure, err error) {
	for _, p := range parts {
		switch p.name {
		case "restore":
			if err := b.hostsFor(ctx, b.scenarios); err != nil {
				return nil, err
			}
			for _, w := range scenarios() {
				if w.on(b) == nil || b.scenarios != "" && !slices.Contains(strings.Split(b.scenarios, ","), w.name) {
					continue
				}
				own = append(own,
					measure{"cdp/" + w.name, retryOtherPath(func(ctx context.Context) (map[string]float64, error) { return b.toCDP(ctx, w) })},
					measure{"login/" + w.name, retryOtherPath(func(ctx context.Context) (map[string]float64, error) { return b.toLogin(ctx, w) })})
			}
		case "save", "cycle":
			all, err := p.measures(ctx, b)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			own = append(own, slices.DeleteFunc(all, func(m measure) bool { return strings.HasSuffix(m.id, "/puppeteer") })...)
		}
	}
	return own, nil
}

// hostsFor starts the daemons that the named restore paths need, besides the one that
// always runs.
func (b *bench) hostsFor(ctx context.Context, names string) (err error) {
	if names == "" {
		b.cold, err = b.host(ctx, []string{"STASIS_SPARES=0"})
		return err
	}
	for name := range strings.SplitSeq(names, ",") {
		switch {
		case strings.HasSuffix(name, "cold") && b.cold == nil:
			b.cold, err = b.host(ctx, []string{"STASIS_SPARES=0"})
		case (name == "shell-warm" || name == "shell-fresh") && b.light == nil:
			b.light, err = b.lightHost(ctx)
		case name == "standby" && b.withStandby == nil:
			if b.withStandby, err = b.host(ctx, nil); err == nil {
				err = b.withStandby.makeStandby(ctx)
			}
		case !slices.ContainsFunc(scenarios(), func(w scenario) bool { return w.name == name }):
			return fmt.Errorf("-ways: %q is not a restore path of this part", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// againstSection has a row for each measure: the older binary's times, the newer one's,
// and whether the newer median is within or below the older one's middle half.
func againstSection(s settings, all times) section {
	sec := section{title: "Two binaries", text: fmt.Sprintf("`%s` (older) and `%s` (newer), %d rounds that take both, seed %d. Milliseconds.", s.against, s.binary, s.rounds, s.seed),
		head: []string{"measure", "older", "newer", "×", ""}}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		name, found := strings.CutPrefix(id, "0 ")
		if !found {
			continue
		}
		older, newer := spread(all[id]), spread(all["1 "+name])
		verdict := "within"
		switch {
		case newer.median > older.high:
			verdict = "**slower**"
		case newer.median < older.low:
			verdict = "faster"
		}
		sec.rows = append(sec.rows, []string{"`" + name + "`", older.String(), newer.String(), ratios(all["1 "+name], all[id]).String(), verdict})
	}
	return sec
}
