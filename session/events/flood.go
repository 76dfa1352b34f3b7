package events

import "time"

const (
	// maxObserved and maxRecorded bound what waits to be written: what pages do
	// leaves room for what the daemon does.
	maxObserved = 1024
	maxRecorded = 4096
	// maxWaiting bounds the bytes of events of pages in the queue, and also those of a
	// batch that is being written: pictures are large.
	maxWaiting = 8 << 20
	// Pages may make floodBurst events at once and floodRate a second: more would push
	// all other events of a run out within minutes. How many were dropped is recorded
	// every tellDropped at most.
	floodBurst  = 256
	floodRate   = 5
	tellDropped = 10 * time.Second
)

// flood limits the rate of events of pages with a bucket that fills with time, and
// counts those that were dropped and not recorded yet. Its owner locks it.
type flood struct {
	left    float64
	at      time.Time
	dropped map[string]int // by type
	tellAt  time.Time      // when the next count is recorded, at the earliest
}

func (f *flood) begin(now time.Time) { f.left, f.at = floodBurst, now }

// allows takes one event out of the bucket.
func (f *flood) allows(now time.Time) bool {
	if passed := now.Sub(f.at); passed > 0 { // a clock that was set back fills nothing
		f.left = min(f.left+passed.Seconds()*floodRate, floodBurst)
	}
	f.at = now
	if f.left < 1 {
		return false
	}
	f.left--
	return true
}

func (f *flood) drop(kind string, n int) {
	if f.dropped == nil {
		f.dropped = map[string]int{}
	}
	f.dropped[kind] += n
}

// told is the data of an event with the count of what was dropped since the last one;
// nil if there is nothing, or if it is too early and not the last call.
func (f *flood) told(now time.Time, last bool) Fields {
	if len(f.dropped) == 0 || !last && now.Before(f.tellAt) {
		return nil
	}
	f.tellAt = now.Add(tellDropped)
	total := 0
	for _, n := range f.dropped {
		total += n
	}
	data := Fields{"count": total, "types": f.dropped}
	f.dropped = nil
	return data
}

// size is the approximate size of the fields as JSON, in bytes.
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
