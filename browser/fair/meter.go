package fair

import (
	"math"
	"time"
)

const (
	// memory is the time constant of the use: about how long use counts.
	memory = 8 * time.Second
	// shortMemory is the time constant of what was used lately.
	shortMemory = time.Second
	// leastHold is how long a meter stays busy at least. A Chrome that gets less cannot use more, so
	// low use says little. A meter that is busy again within forgetAfter stays so twice as
	// long, up to mostHold.
	leastHold   = 10 * time.Second
	mostHold    = 80 * time.Second
	forgetAfter = 2 * time.Minute
)

// meter measures the use of processors, and remembers whether that was too much.
type meter struct {
	rate   float64 // processors, on average over the last seconds
	lately float64 // the same, over the last second
	at     time.Time

	busy  bool
	hold  time.Duration
	until time.Time // busy at least until then
	ended time.Time // when it was last no longer busy
}

// decay brings the use to the present.
func (m *meter) decay(now time.Time) {
	if passed := now.Sub(m.at); passed > 0 && !m.at.IsZero() {
		m.rate *= math.Exp(-passed.Seconds() / memory.Seconds())
		m.lately *= math.Exp(-passed.Seconds() / shortMemory.Seconds())
	}
	m.at = now
}

// add adds some CPU time.
func (m *meter) add(now time.Time, used time.Duration) {
	m.decay(now)
	m.rate += used.Seconds() / memory.Seconds()
	m.lately += used.Seconds() / shortMemory.Seconds()
}

// judge decides which of some meters are busy: those that use more than an equal part of the
// processors, or much more than an equal part of what all of them use. The second matters
// beside other programs, which take a part of the processors. What is busy already gets only the
// rest, so the parts are those of the others: else they would use more than their part of all,
// and would be busy too.
func judge(all []*meter, now time.Time, processors float64) {
	n, sum := 0, 0.0
	for _, m := range all {
		if sum += m.rate; m.rate > active && !m.busy {
			n++
		}
	}
	part := func(n int) float64 {
		return max(leastPart, min(processors, much*sum)/float64(max(n, leastSharing)))
	}
	for _, m := range all {
		switch {
		case !m.busy && m.rate > part(n):
			m.begin(now)
		case m.busy && !now.Before(m.until) && m.rate < part(n+1)/2:
			m.busy, m.ended = false, now
		}
	}
}

// begin makes the meter busy.
func (m *meter) begin(now time.Time) {
	if m.hold == 0 || now.Sub(m.ended) > forgetAfter {
		m.hold = leastHold
	} else {
		m.hold = min(2*m.hold, mostHold)
	}
	m.busy, m.until = true, now.Add(m.hold)
}
