package events

import "time"

const (
	// maxObserved and maxRecorded bound what waits to be written: what pages do
	// leaves room for what the daemon does.
	maxObserved = 1024
	maxRecorded = 4096
	// maxWaiting bounds the bytes of what pages told that waits, and once more those
	// of what the catalogue was asked to take: pictures are large.
	maxWaiting = 8 << 20
	// Pages may tell floodBurst events at once and floodRate a second: more would
	// push all else out of what is kept of a run within minutes. What was dropped
	// is told that often.
	floodBurst  = 256
	floodRate   = 5
	tellDropped = 10 * time.Second
)

// flood counts what pages tell, as a bucket that fills with time, and what was
// dropped and not told yet. Its owner locks it.
type flood struct {
	left    float64
	at      time.Time
	dropped map[string]int // by type
	tellAt  time.Time      // when the next ones are told, at the earliest
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

// told is the data of the event that tells what was dropped since the last one;
// nil where that is nothing, or it is too early and not the last time.
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

// size is about how many bytes of JSON they are.
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
