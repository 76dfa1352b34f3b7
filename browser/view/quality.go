package view

import "time"

// quality chooses the size and the compression of pictures by the rate at which they reach
// the viewer. Until the first one is measured, pictures are small.
type quality struct {
	at    int  // index in steps
	fast  int  // pictures in a row that allow a better step
	known bool // a picture was measured
}

// level is one quality of pictures.
type level struct {
	percent int64 // of JPEG
	size    int64 // the most pixels in width and in height
}

// step is what a connection gets that takes at least rate bytes in a second: small pictures
// while the person gives input, and sharp ones otherwise. Chrome makes a picture of 800
// pixels in 50 ms and one of 1280 in 80 (measured, Chromium 156).
type step struct {
	input, still level
	rate         float64
}

// steps are the qualities, the best first. A page of 1280×800 pixels full of text has 315,
// 214, 190 and 164 KB in the sharp ones, and 30 KB in the last of the small ones.
func steps() []step {
	return []step{
		{level{80, 800}, level{80, 2560}, 1.5e6},
		{level{50, 800}, level{50, 1280}, 1e6},
		{level{30, 800}, level{40, 1280}, 0.5e6},
		{level{20, 640}, level{30, 1280}, 0},
	}
}

const (
	// tooSlow is how long a picture may take until the viewer has drawn it. One that takes
	// longer makes the quality worse at once.
	tooSlow = 400 * time.Millisecond
	// fastEnough is how long a small picture may take to count for a better quality.
	fastEnough = 100 * time.Millisecond
	// smallPicture is a size in bytes. The time of a smaller picture does not give the
	// rate, because most of it is the connection's delay.
	smallPicture = 24 << 10
	// fastInARow is how many pictures in a row make the quality better by one step, so that
	// it does not swing.
	fastInARow = 10
)

// level returns the quality of the next pictures. input says that the person gives input.
func (q *quality) level(input bool) level {
	if input || !q.known {
		return steps()[q.at].input
	}
	return steps()[q.at].still
}

// measured takes the time of one picture. size is in bytes, with the pictures that were on the
// way before it. It reports whether the quality changed.
func (q *quality) measured(size int, took time.Duration) (changed bool) {
	first := !q.known
	q.known = true
	rate := float64(size) / max(took, time.Millisecond).Seconds()
	best := len(steps()) - 1 // the best step that the rate allows
	for best > 0 && steps()[best-1].rate <= rate {
		best--
	}
	switch {
	case took > tooSlow && best > q.at:
		q.at, q.fast = best, 0
		return true
	case q.at > 0 && (best < q.at || size < smallPicture) && (size >= smallPicture || took < fastEnough):
		if q.fast++; q.fast < fastInARow {
			return first
		}
		q.at, q.fast = q.at-1, 0
		return true
	}
	q.fast = 0
	return first
}
