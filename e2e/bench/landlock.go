package main

import "context"

// landlockMeasures time a cold start of each engine, behind Landlock and without it,
// with one daemon for each.
func landlockMeasures(ctx context.Context, b *bench) ([]measure, error) {
	var all []measure
	for _, without := range []bool{false, true} {
		env, name := []string{"STASIS_SPARES=0"}, "landlock/"
		if without {
			env, name = append(env, "STASIS_NO_LANDLOCK=true"), "no-landlock/"
		}
		h, err := b.host(ctx, env)
		b.others = append(b.others, h)
		if err != nil {
			return nil, err
		}
		for _, engine := range []string{chrome, shell} {
			w := scenario{engine: engine, on: func(*bench) *host { return h }, body: freshBody}
			all = append(all, measure{name + engine, func(ctx context.Context) (map[string]float64, error) { return b.toCDP(ctx, w) }})
		}
	}
	return all, nil
}

func (b *bench) landlockSection() section {
	s := section{
		title: "What Landlock costs",
		text:  "Time from the create of a fresh session without a spare to a script's answer in its page, with Landlock and with `--no-landlock`.",
		head:  []string{"engine", "with Landlock, ms", "without, ms", "×"},
	}
	for _, engine := range []string{chrome, shell} {
		with, without := b.times["landlock/"+engine], b.times["no-landlock/"+engine]
		s.rows = append(s.rows, []string{engine, spread(with).String(), spread(without).String(), ratios(with, without).String()})
	}
	return s
}
