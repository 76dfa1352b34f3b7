package events

import "time"

const (
	// maxObserved and maxRecorded limit how many events wait to be written. Events of
	// pages stop at the lower limit, which leaves space for the daemon's own.
	maxObserved = 1024
	maxRecorded = 4096
	// maxWaiting limits the bytes of page events in the queue, and separately in the
	// batch that is being written: images are large.
	maxWaiting = 8 << 20
	// Pages may record floodBurst events at once and floodRate a second. More would push
	// all other events of a run out within minutes. The number of dropped events is
	// recorded at most once every reportDroppedEvery.
	floodBurst         = 256
	floodRate          = 5
	reportDroppedEvery = 10 * time.Second
)

// flood limits the rate of page events with a token bucket, and counts dropped events
// that are not recorded yet. Its owner must lock it.
type flood struct {
	tokens   float64
	at       time.Time
	dropped  map[string]int // by type
	reportAt time.Time      // the earliest time to record the next count
}

func (f *flood) begin(now time.Time) { f.tokens, f.at = floodBurst, now }

// allows takes one token from the bucket and reports whether there was one.
func (f *flood) allows(now time.Time) bool {
	if passed := now.Sub(f.at); passed > 0 { // a clock that was set back adds no tokens
		f.tokens = min(f.tokens+passed.Seconds()*floodRate, floodBurst)
	}
	f.at = now
	if f.tokens < 1 {
		return false
	}
	f.tokens--
	return true
}

func (f *flood) drop(kind string, n int) {
	if f.dropped == nil {
		f.dropped = map[string]int{}
	}
	f.dropped[kind] += n
}

// takeDropped returns the data of an event with the number of events dropped since the last
// call. It returns nil if none were dropped, or if it is too early and last is not set.
func (f *flood) takeDropped(now time.Time, last bool) Fields {
	if len(f.dropped) == 0 || !last && now.Before(f.reportAt) {
		return nil
	}
	f.reportAt = now.Add(reportDroppedEvery)
	total := 0
	for _, n := range f.dropped {
		total += n
	}
	data := Fields{"count": total, "types": f.dropped}
	f.dropped = nil
	return data
}

// size returns the approximate size of the fields as JSON, in bytes.
func (f Fields) size() (n int) {
	for name, value := range f {
		n += len(name)
		switch v := value.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v) * 4 / 3
		default:
			n += 16
		}
	}
	return n
}
