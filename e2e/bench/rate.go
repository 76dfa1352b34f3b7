package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// rateLook is for how long sessions are made and ended by so many at once.
const rateLook = 10 * time.Second

// bend is how much more one must get of twice as many at once, or it has bent.
const bend = 1.15

// rateSurvey makes and throws away sessions, ever more of them at once, and
// finds where that gives no more of them.
func rateSurvey(ctx context.Context, b *bench) (err error) {
	h, err := b.host(ctx, nil)
	defer func() { err = stopped(h, err) }()
	if err != nil {
		return err
	}
	s := section{
		title: "Creates per second",
		head:  []string{"callers", "creates per second", "one create, ms"},
	}
	var last float64
	bent := 0
	for _, callers := range []int{1, 2, 4, 8} {
		rate, creates, err := h.rate(ctx, callers)
		if err != nil {
			return err
		}
		if bent == 0 && rate < last*bend {
			bent = callers
		}
		last = rate
		s.rows = append(s.rows, []string{fmt.Sprint(callers), number(rate), spread(creates).String()})
	}
	where := "It did not bend."
	if bent > 0 {
		where = fmt.Sprintf("It bends at %d callers: twice as many got less than %s × as many sessions.", bent, number(bend))
	}
	s.text = fmt.Sprintf("Each caller makes a fresh session and deletes it, again and again, for %s. %s", rateLook, where)
	b.seen = append(b.seen, s)
	return nil
}

// rate lets so many callers make and end sessions beside each other.
func (h *host) rate(ctx context.Context, callers int) (perSecond float64, creates []float64, err error) {
	if err := h.ready(ctx, 0); err != nil {
		return 0, nil, err
	}
	group, inGroup := errgroup.WithContext(ctx)
	of := make([][]float64, callers)
	start := time.Now()
	for i := range callers {
		group.Go(func() error {
			for time.Since(start) < rateLook {
				var one *session
				ms, err := timed(func() (err error) {
					one, err = h.create(inGroup, obj{"wait_seconds": int(rateLook.Seconds())})
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
