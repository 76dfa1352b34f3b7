package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

const (
	// A rate is borne if so many of the offered creates and ends succeed in time, none
	// fails, and the p99 of a create is at most tooSlow.
	enough  = 0.98
	tooSlow = time.Second
	// growth is the ratio of two rates of the search.
	growth = 1.5
	// spare is the share of the highest rate that was borne in the search that is then
	// offered for long.
	spare = 0.8
)

// step is what one rate has given.
type step struct {
	rate                          float64 // creates, and ends, that were offered in a second
	took                          time.Duration
	creates, ends, saves, lookups summary
	outrun                        int // saves whose default had been moved before, by another session of the user
	before, after                 reading
}

// borne reports whether the cluster bears the rate, and if not, why.
func (s step) borne() (bool, string) {
	ended := s.ends.Count + s.saves.Count
	switch done := float64(min(s.creates.Count, ended)) / s.took.Seconds(); {
	case s.creates.failures()+s.ends.failures()+s.saves.failures() > 0:
		return false, fmt.Sprintf("failed: creates %v, ends %v, saves %v", s.creates.Errors, s.ends.Errors, s.saves.Errors)
	case done < enough*s.rate:
		return false, fmt.Sprintf("%.0f of %.0f a second", done, s.rate)
	case s.creates.P99 > tooSlow:
		return false, fmt.Sprintf("the p99 of a create is %v", s.creates.P99.Round(time.Millisecond))
	}
	return true, ""
}

// offer offers a rate, and reads the server before and after.
func (c *cluster) offer(ctx context.Context, l *load, rate float64, d time.Duration) (step, error) {
	s := step{rate: rate}
	var err error
	if s.before, err = c.observer.read(ctx); err != nil {
		return s, err
	}
	s.before.transactions = c.shared.transactions.counts()
	s.took = l.offer(ctx, rate, d)
	s.creates, s.ends, s.saves, s.lookups = l.creates.summary(), l.ends.summary(), l.saves.summary(), l.lookups.summary()
	s.outrun = int(l.outrun.Load())
	if s.after, err = c.observer.read(ctx); err != nil {
		return s, err
	}
	s.after.transactions = c.shared.transactions.counts()
	ok, why := s.borne()
	progress("%5.0f/s for %v: borne %v %s; create p50 %v p99 %v, end p99 %v, save p99 %v, lookup p99 %v; %d commits, %d rollbacks, %d connections; CPU of server %v, of nodes and load %v",
		rate, s.took.Round(time.Second), ok, why, s.creates.P50.Round(time.Millisecond), s.creates.P99.Round(time.Millisecond), s.ends.P99.Round(time.Millisecond), s.saves.P99.Round(time.Millisecond), s.lookups.P99.Round(time.Millisecond),
		s.after.commits-s.before.commits, s.after.rollbacks-s.before.rollbacks, s.after.connections,
		(s.after.serverCPU - s.before.serverCPU).Round(time.Millisecond), (s.after.nodesCPU - s.before.nodesCPU).Round(time.Millisecond))
	return s, ctx.Err()
}

// search raises the rate until the cluster does not bear it, tries one between the last two, and
// returns the rate for the long measurement.
func (m *measured) search(ctx context.Context, c *cluster, l *load) (float64, error) {
	best := 0.0
	for rate, last := m.settings.first, false; ; {
		s, err := c.offer(ctx, l, rate, m.settings.step)
		if err != nil {
			return 0, err
		}
		m.steps = append(m.steps, s)
		ok, why := s.borne()
		switch {
		case !ok && best == 0:
			return 0, fmt.Errorf("the machine does not bear the first rate: %s; give a lower one with -from", why)
		case ok:
			best = rate
		}
		if last {
			return spare * best, nil
		}
		if ok {
			rate *= growth
			continue
		}
		rate, last = best*math.Sqrt(growth), true
		if err := l.fill(ctx, m.settings.sessions); err != nil { // creates failed, and ends did not
			return 0, err
		}
	}
}

// rest reads the server before and after a time without a load: only the nodes work.
func (c *cluster) rest(ctx context.Context, d time.Duration) (s step, err error) {
	if s.before, err = c.observer.read(ctx); err != nil {
		return s, err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	s.took = d
	if s.after, err = c.observer.read(ctx); err == nil {
		err = ctx.Err()
	}
	progress("at rest: %d commits in %v, CPU of server %v", s.after.commits-s.before.commits, d, (s.after.serverCPU - s.before.serverCPU).Round(time.Millisecond))
	return s, err
}
