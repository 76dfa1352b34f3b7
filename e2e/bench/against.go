package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// otherHosts is where the hosts of the older binary begin, so that no two daemons
// have the same users.
const otherHosts = 50

// compared takes the measures of Stasis itself with two binaries, both in each round, and
// prints where the new one's median lies among the old one's times.
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

// ownMeasures are the measures of Stasis itself, of some parts: the ways to a browser on
// a daemon with spares and on one without, saves, and a whole life. Standbys and spares
// of the shell are left out: with two daemons for each the machine is never at rest.
func (b *bench) ownMeasures(ctx context.Context, parts []part) (own []measure, err error) {
	for _, p := range parts {
		switch p.name {
		case "restore":
			if b.cold, err = b.host(ctx, []string{"STASIS_SPARES=0"}); err != nil {
				return nil, err
			}
			for _, w := range ways() {
				if w.on(b) == nil {
					continue
				}
				own = append(own,
					measure{"cdp/" + w.name, again(func(ctx context.Context) (map[string]float64, error) { return b.toCDP(ctx, w) })},
					measure{"login/" + w.name, again(func(ctx context.Context) (map[string]float64, error) { return b.toLogin(ctx, w) })})
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

// againstSection is a row for each measure: the older binary's times, the newer
// one's, and whether the newer one's median lies in the older one's middle half, or
// below it.
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
