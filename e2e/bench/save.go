package main

import "context"

// modes returns the save modes of a session's end.
func modes() []string { return []string{"filesystem", "memory", "none"} }

// saveMeasures time the end of a session of the probe profile, in each mode.
func saveMeasures(_ context.Context, b *bench) ([]measure, error) {
	var all []measure
	for _, mode := range modes() {
		all = append(all, measure{"save/" + mode, func(ctx context.Context) (map[string]float64, error) {
			s, err := b.ours.atMe(ctx, obj{})
			if err != nil {
				return nil, err
			}
			if err := b.ours.ready(ctx, 1); err != nil {
				return nil, err
			}
			var snapshot string
			ms, err := timed(func() (err error) {
				snapshot, err = s.end(ctx, mode, false)
				return err
			})
			if err == nil && snapshot != "" { // removes the parked Chrome before the next measure
				err = b.ours.forget(ctx, snapshot)
			}
			return map[string]float64{"": ms}, err
		}})
	}
	return all, nil
}

// cycleMeasures time a whole session: create it, visit a page, end it.
func cycleMeasures(_ context.Context, b *bench) ([]measure, error) {
	return []measure{
		{"cycle/stasis", func(ctx context.Context) (map[string]float64, error) {
			if err := b.ours.ready(ctx, 0); err != nil {
				return nil, err
			}
			return b.node.time(ctx, "cycle", b.ours.order(obj{"body": obj{}, "url": b.site.URL + "/"}))
		}},
		{"cycle/puppeteer", func(ctx context.Context) (map[string]float64, error) {
			if err := settle(ctx); err != nil {
				return nil, err
			}
			return b.node.time(ctx, "launch", obj{"chrome": b.chrome, "url": b.site.URL + "/"})
		}},
	}, nil
}
