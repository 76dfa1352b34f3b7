package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// rateTime is how long a number of callers create and end sessions.
const rateTime = 10 * time.Second

// minGain is the minimum gain from twice as many callers. Below it the rate has reached its
// limit.
const minGain = 1.15

// rateSurvey creates and deletes sessions with more and more callers, and finds the
// number at which more callers gain nothing.
func rateSurvey(ctx context.Context, b *bench) (err error) {
	h, err := b.host(ctx, nil)
	defer func() { err = stopHost(h, err) }()
	if err != nil {
		return err
	}
	s := section{
		title: "Creates per second",
		head:  []string{"callers", "creates per second", "one create, ms"},
	}
	var last float64
	limit := 0
	for _, callers := range []int{1, 2, 4, 8} {
		rate, creates, err := h.rate(ctx, callers)
		if err != nil {
			return err
		}
		if limit == 0 && rate < last*minGain {
			limit = callers
		}
		last = rate
		s.rows = append(s.rows, []string{fmt.Sprint(callers), number(rate), spread(creates).String()})
	}
	where := "More callers always made more sessions."
	if limit > 0 {
		where = fmt.Sprintf("The limit is at %d callers: twice as many made less than %s × as many sessions.", limit, number(minGain))
	}
	s.text = fmt.Sprintf("Each caller creates and deletes fresh sessions for %s. %s", rateTime, where)
	b.surveyed = append(b.surveyed, s)
	return nil
}

// rate lets callers create and end sessions at the same time.
func (h *host) rate(ctx context.Context, callers int) (perSecond float64, creates []float64, err error) {
	if err := h.ready(ctx, 0); err != nil {
		return 0, nil, err
	}
	group, inGroup := errgroup.WithContext(ctx)
	of := make([][]float64, callers)
	start := time.Now()
	for i := range callers {
		group.Go(func() error {
			for time.Since(start) < rateTime {
				var one *session
				ms, err := timed(func() (err error) {
					one, err = h.create(inGroup, obj{"wait_seconds": int(rateTime.Seconds())})
					return err
				})
				if err != nil {
					return err
				}
				if _, err := one.end(inGroup, "none", false); err != nil {
					return err
				}
				of[i] = append(of[i], ms)
			}
			return nil
		})
	}
	err = group.Wait()
	for _, list := range of {
		creates = append(creates, list...)
	}
	return float64(len(creates)) / time.Since(start).Seconds(), creates, err
}
