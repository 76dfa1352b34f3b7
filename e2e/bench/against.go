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

// ownMeasures are the measures of Stasis itself, of some parts: the ways to a browser,
// saves, and a whole life. Without -ways, standbys and spares of the shell are left out:
// each takes a daemon more for each binary, and with all of them the machine is never at
// rest.
func (b *bench) ownMeasures(ctx context.Context, parts []part) (own []measure, err error) {
	for _, p := range parts {
		switch p.name {
		case "restore":
			if err := b.hostsFor(ctx, b.ways); err != nil {
				return nil, err
			}
			for _, w := range ways() {
				if w.on(b) == nil || b.ways != "" && !slices.Contains(strings.Split(b.ways, ","), w.name) {
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

// hostsFor starts the daemons that some ways are measured on, beside the one that there
// always is.
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
		case name == "standby" && b.standing == nil:
			if b.standing, err = b.host(ctx, nil); err == nil {
				err = b.standing.stand(ctx)
			}
		case !slices.ContainsFunc(ways(), func(w way) bool { return w.name == name }):
			return fmt.Errorf("-ways: %q is none of them", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
